// What lanes by hand share: runs in the lanes of AVX-512 registers, the random numbers that Quorisk's engines draw
// (kernels/engines/philox.py), what is counted, and the loop that gives a lane whose run has ended the next one.
//
// One core makes 32 runs at a time, in the 32-bit lanes of two registers. A program includes this once and says what a
// run is: a struct of lanes with, besides what it knows of runs,
//
//     Lanes run;                                           the runs' numbers
//     static constexpr int STEP_BITS, MESSAGE_BITS;        of a row, which says how a run has ended
//     static constexpr int INVARIANTS;                     that are counted
//     struct Chosen;                                       what happens in a step
//     void begin(Some some);                               these lanes' runs are at their start
//     Lanes steps() const;                                 taken so far
//     Chosen choose(const Source&, const Draws&, Lanes step) const;
//     void take(const Chosen&, Lanes step, Some live, Breaches<INVARIANTS>&);
//     Some over() const;                                   nothing may happen any more
//     Lanes rows() const;                                  COMPLETED and LOST, then steps, then messages

#if !defined(__AVX512BW__) || !defined(__AVX512VBMI__) || !defined(__AVX512BITALG__) || \
    !defined(__AVX512VPOPCNTDQ__) || !defined(__AVX512VNNI__)
#error "needs a CPU with AVX-512 VBMI, BITALG, VNNI and VPOPCNTDQ, as Intel's since Ice Lake and AMD's since Zen 4"
#endif

#include <immintrin.h>

#include <cstdint>

namespace {

using Word = std::uint32_t;
using Lanes = Word __attribute__((vector_size(64)));  // a word of each of 16 runs
using Some = __mmask16;                               // some of these runs
constexpr int GROUPS = 2;                             // of 16 runs: while one waits for its numbers, the other goes on

// ---- Lanes

Lanes all(Word word) { return Lanes{} + word; }
__m512i raw(Lanes words) { return reinterpret_cast<__m512i>(words); }
Lanes lanes(__m512i words) { return reinterpret_cast<Lanes>(words); }
Some has(Lanes words, Word bits) { return _mm512_test_epi32_mask(raw(words), raw(all(bits))); }
Some lacks(Lanes words, Word bits) { return _mm512_testn_epi32_mask(raw(words), raw(all(bits))); }
Lanes where(Some some, Lanes yes, Lanes no) { return lanes(_mm512_mask_blend_epi32(some, raw(no), raw(yes))); }
Lanes only(Some some, Lanes words) { return lanes(_mm512_maskz_mov_epi32(some, raw(words))); }
Lanes with(Lanes words, Some some, Word bits) { return where(some, words | bits, words); }
Lanes without(Lanes words, Some some, Word bits) { return where(some, words & ~bits, words); }
Lanes plus(Lanes words, Some some, Word number) { return where(some, words + number, words); }

// The lower words of 64-bit lanes, those of `odd` in the odd lanes.
Lanes joined(__m512i even, __m512i odd) {
    return lanes(_mm512_mask_blend_epi32(0xAAAA, even, _mm512_slli_epi64(odd, 32)));
}

// ---- Bytes of lanes

using SomeBytes = __mmask64;
constexpr Word EVERY_BYTE = 0x01010101;

struct Bytes {
    alignas(64) std::uint8_t each[64] = {};
};

__m512i raw(const Bytes& bytes) { return _mm512_load_si512(bytes.each); }

// By which a byte is found in its quarter of a register.
Lanes in_quarters(Word bytes) {
    return lanes(_mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0)) | bytes;
}

// The byte of each lane at a place, in all its bytes.
Lanes every_byte(Lanes words, int place) {
    return lanes(_mm512_shuffle_epi8(raw(words), raw(in_quarters(place * EVERY_BYTE))));
}

// The sum of each lane's bytes times those of `weights`, which are below 128, added to `start`.
Lanes sum_of_bytes(Lanes bytes, Word weights = EVERY_BYTE, Lanes start = Lanes{}) {
    return lanes(_mm512_dpbusd_epi32(raw(start), raw(bytes), raw(all(weights))));
}

// ---- Random numbers

constexpr Word MULTIPLIER_0 = 0xD2511F53, MULTIPLIER_1 = 0xCD9E8D57, WEYL_0 = 0x9E3779B9, WEYL_1 = 0xBB67AE85;

constexpr int ROUNDS = 10;

struct Source {
    std::uint64_t seed, loss;  // the probability that a message is lost, in units of 2**-63
    Word leading;              // the 15 bits of it that are compared first
    Lanes keys[ROUNDS][2];     // of the generator's rounds

    Source(std::uint64_t seed, std::uint64_t loss)
        : seed{seed}, loss{loss}, leading(loss >> 48 < 0x7fff ? loss >> 48 : 0x7fff) {
        Word k0 = seed, k1 = seed >> 32;
        for (auto& [first, second] : keys) first = all(k0), second = all(k1), k0 += WEYL_0, k1 += WEYL_1;
    }
};

struct Draws {
    __m512i choose[2];  // of the even lanes and of the odd ones, each in the lower half of 64 bits
    Lanes fates_01, fates_23;
};

// Block 0 of a step, by Philox4x32-10. Upper halves of 64-bit lanes mean nothing: multiplications take the lower ones.
Draws draw(const Source& source, Lanes run, Lanes step) {
    const __m512i m0 = raw(all(MULTIPLIER_0)), m1 = raw(all(MULTIPLIER_1));
    __m512i c0[2] = {raw(run), _mm512_srli_epi64(raw(run), 32)}, c2[2] = {raw(step), _mm512_srli_epi64(raw(step), 32)};
    __m512i c1[2] = {}, c3[2] = {};
    for (const auto& [k0, k1] : source.keys) {
        for (int odd = 0; odd < 2; ++odd) {
            const __m512i p0 = _mm512_mul_epu32(c0[odd], m0), p1 = _mm512_mul_epu32(c2[odd], m1);
            c0[odd] = _mm512_srli_epi64(p1, 32) ^ c1[odd] ^ raw(k0);
            c2[odd] = _mm512_srli_epi64(p0, 32) ^ c3[odd] ^ raw(k1);
            c1[odd] = p1, c3[odd] = p0;
        }
    }
    return {{c0[0], c0[1]}, joined(c2[0], c2[1]), joined(c3[0], c3[1])};
}

struct Pair {
    std::uint64_t first, second;
};

// Any block, of one run.
Pair draw_pair(std::uint64_t seed, Word run, Word step, Word block) {
    Word c0 = run, c1 = 0, c2 = step, c3 = block, k0 = seed, k1 = seed >> 32;
    for (int round = 0; round < ROUNDS; ++round, k0 += WEYL_0, k1 += WEYL_1) {
        const std::uint64_t p0 = std::uint64_t{c0} * MULTIPLIER_0, p1 = std::uint64_t{c2} * MULTIPLIER_1;
        c0 = (p1 >> 32) ^ c1 ^ k0, c1 = p1, c2 = (p0 >> 32) ^ c3 ^ k1, c3 = p0;
    }
    return {c0 | std::uint64_t{c1} << 32, c2 | std::uint64_t{c3} << 32};
}

// Which of `num` is drawn, where block 0 leaves that open.
[[gnu::cold, gnu::noinline]] Word settled_choice(const Source& source, Word run, Word step, Word num) {
    const std::uint64_t product = (draw_pair(source.seed, run, step, 0).first & ~Word{0}) * num;
    const std::uint64_t following = draw_pair(source.seed, run, step, 1).first;
    const std::uint64_t further = static_cast<unsigned __int128>(following) * num >> 64;
    return (product >> 32) + (((product & ~Word{0}) + further) >> 32);
}

// Bit j: message j arrives, of three of which block 0 leaves one open.
[[gnu::cold, gnu::noinline]] Word settled_fates(const Source& source, Word run, Word step) {
    const std::uint64_t fates = draw_pair(source.seed, run, step, 0).second;
    const Pair block_2 = draw_pair(source.seed, run, step, 2), block_3 = draw_pair(source.seed, run, step, 3);
    const std::uint64_t following[3] = {block_2.first, block_2.second, block_3.first};
    const std::uint64_t rest = source.loss - (std::uint64_t{source.leading} << 48);
    Word kept = 0;
    for (int j = 0; j < 3; ++j) {
        const Word fate = fates >> 16 * j & 0x7fff;
        const bool lost = fate < source.leading || (fate == source.leading && following[j] << 16 >> 16 < rest);
        kept |= Word{!lost} << j;
    }
    return kept;
}

// Bit j: message j of the step arrives.
Lanes kept_messages(const Source& source, const Draws& draws, Lanes run, Lanes step) {
    const Word guards = 0x80008000, leading = source.leading * 0x10001;
    const Lanes above_01 = (draws.fates_01 | guards) - leading, above_23 = (draws.fates_23 | guards) - leading;
    Lanes kept = (above_01 >> 15 & 1) | (above_01 >> 30 & 2) | (above_23 >> 13 & 4);
    const __m512i bits = raw(all(0x7fff7fff));
    const __mmask32 open = _mm512_testn_epi16_mask(raw(above_01), bits) | _mm512_testn_epi16_mask(raw(above_23), bits);
    if (__builtin_expect(open != 0, 0)) {
        for (int lane = 0; lane < 16; ++lane) {
            if (open >> 2 * lane & 3) kept[lane] = settled_fates(source, run[lane], step[lane]);
        }
    }
    return kept;
}

// ---- The choice

// By 16 n + nibble: the bit of the nibble that has n set below it; 0 if there is none.
constexpr Bytes NTH_OF_NIBBLES = [] {
    Bytes bits;
    for (int nibble = 0; nibble < 16; ++nibble) {
        for (int bit = 1, n = 0; bit < 16; bit *= 2) {
            if (nibble & bit) bits.each[16 * n++ + nibble] = bit;
        }
    }
    return bits;
}();

// The bit of each mask that has `nth` set below it: looked up in all nibbles at once.
Lanes nth_bit(Lanes mask, Lanes nth) {
    const __m512i low = _mm512_set1_epi8(0x0f), most = _mm512_set1_epi8(4);
    Lanes upto = lanes(_mm512_popcnt_epi8(raw(mask)));  // bits of each byte and of those before it in its lane
    upto += upto << 8;
    upto += upto << 16;
    const __m512i nth_of_byte = _mm512_sub_epi8(raw(every_byte(nth, 0)), raw(upto << 8));
    const __m512i nth_of_upper = _mm512_sub_epi8(nth_of_byte, _mm512_popcnt_epi8(raw(mask) & low));
    const auto looked_up = [&](Lanes nibbles, __m512i n) {
        const __m512i index = (raw(nibbles) & low) | (raw(lanes(n) << 4) & ~low);
        return lanes(_mm512_maskz_permutexvar_epi8(_mm512_cmplt_epu8_mask(n, most), index, raw(NTH_OF_NIBBLES)));
    };
    return looked_up(mask, nth_of_byte) | looked_up(mask >> 4, nth_of_upper) << 4;
}

// Which of `num` things that are as likely is drawn.
Lanes draw_below(const Source& source, const Draws& draws, Lanes run, Lanes step, Lanes num) {
    const __m512i even = _mm512_mul_epu32(draws.choose[0], raw(num));
    const __m512i odd = _mm512_mul_epu32(draws.choose[1], _mm512_srli_epi64(raw(num), 32));
    Lanes nth = joined(_mm512_srli_epi64(even, 32), _mm512_srli_epi64(odd, 32));
    const Some open = _mm512_cmpge_epu32_mask(raw(joined(even, odd)), raw(all(-64)));  // of 64 things at most
    if (__builtin_expect(open != 0, 0)) {
        for (int lane = 0; lane < 16; ++lane) {
            if (open >> lane & 1) nth[lane] = settled_choice(source, run[lane], step[lane], num[lane]);
        }
    }
    return nth;
}

// ---- What is counted

constexpr Word COMPLETED = 1, LOST = 2;  // of a row; else a run got stuck

template <int NUM>
struct Breaches {
    std::int64_t runs[NUM] = {}, first_steps[NUM] = {};
    Lanes recent[NUM] = {};  // of the first steps

    void note(int invariant, Some some, Lanes step) {
        runs[invariant] += __builtin_popcount(some);
        recent[invariant] += only(some, step);
    }

    void sum_up() {
        for (int i = 0; i < NUM; ++i) {
            for (int lane = 0; lane < 16; ++lane) first_steps[i] += recent[i][lane];
            recent[i] = Lanes{};
        }
    }
};

// What kernels/engines/tally.py adds up, but for times.
template <int NUM>
struct Counts {
    std::int64_t completed, stuck, lost, steps, steps_squared, messages, step_histogram[32];
    std::int64_t broken[NUM], first_steps[NUM];
};

constexpr Word MOST_ROWS = 1 << 12;

template <class Runs>
struct Work {
    Word following, last;  // the run that begins next, and the one after the last
    Breaches<Runs::INVARIANTS> breaches;
    Word num_rows = 0;
    Word rows[MOST_ROWS];                                             // of runs that have ended
    Word seen[1 << (2 + Runs::STEP_BITS + Runs::MESSAGE_BITS)] = {};  // runs by row

    Some live(const Runs& runs) const { return _mm512_cmplt_epu32_mask(raw(runs.run), raw(all(last))); }

    void begin(Runs& runs, Some some) {
        const Lanes places = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
        runs.run = lanes(_mm512_mask_expand_epi32(raw(runs.run), some, raw(places + following)));
        following += __builtin_popcount(some);
        runs.begin(some);
    }

    void end(const Runs& runs, Some some) {
        _mm512_storeu_si512(rows + num_rows, _mm512_maskz_compress_epi32(some, raw(runs.rows())));
        num_rows += __builtin_popcount(some);
    }

    void sum_up() {
        for (Word i = 0; i < num_rows; ++i) ++seen[rows[i]];
        num_rows = 0;
        breaches.sum_up();
    }

    void add_to(Counts<Runs::INVARIANTS>& counts) const {
        for (Word row = 0; row < sizeof(seen) / sizeof(Word); ++row) {
            const std::int64_t num = seen[row], steps = row >> 2 & ((1 << Runs::STEP_BITS) - 1);
            if (num == 0) continue;
            (row & LOST ? counts.lost : row & COMPLETED ? counts.completed : counts.stuck) += num;
            counts.steps += num * steps, counts.steps_squared += num * steps * steps;
            counts.messages += num * (row >> (2 + Runs::STEP_BITS));
            counts.step_histogram[32 - __builtin_clz(steps)] += num;
        }
        for (int i = 0; i < Runs::INVARIANTS; ++i) {
            counts.broken[i] += breaches.runs[i], counts.first_steps[i] += breaches.first_steps[i];
        }
    }
};

// ---- The loop

// One more step of all runs; whether any of them is asked for. Part by part, so that one group has something to do
// while the other waits.
template <class Runs>
bool step(Runs (&runs)[GROUPS], const Source& source, Work<Runs>& work) {
    Lanes number[GROUPS];
    Draws draws[GROUPS];
    typename Runs::Chosen chosen[GROUPS];
    Some any = 0;
#pragma GCC unroll GROUPS
    for (int i = 0; i < GROUPS; ++i) {
        number[i] = runs[i].steps() + 1;
        draws[i] = draw(source, runs[i].run, number[i]);
    }
#pragma GCC unroll GROUPS
    for (int i = 0; i < GROUPS; ++i) chosen[i] = runs[i].choose(source, draws[i], number[i]);
#pragma GCC unroll GROUPS
    for (int i = 0; i < GROUPS; ++i) {
        const Some asked_for = work.live(runs[i]);
        any |= asked_for;
        runs[i].take(chosen[i], number[i], asked_for, work.breaches);
    }
#pragma GCC unroll GROUPS
    for (int i = 0; i < GROUPS; ++i) {
        const Some over = runs[i].over();
        work.end(runs[i], over & work.live(runs[i]));
        work.begin(runs[i], over);
    }
    return any != 0;
}

// Makes the runs `first_run` to `first_run` + `num_runs` - 1, and adds them to `counts`.
template <class Runs>
void make(std::uint64_t seed, std::uint64_t loss, Word first_run, Word num_runs, Counts<Runs::INVARIANTS>& counts) {
    const Source source(seed, loss);
    Work<Runs> work;
    work.following = first_run, work.last = first_run + num_runs;
    Runs runs[GROUPS] = {};
    for (Runs& each : runs) work.begin(each, 0xffff);
    while (step(runs, source, work)) {
        if (work.num_rows > MOST_ROWS - 16 * GROUPS) work.sum_up();
    }
    work.sum_up();
    work.add_to(counts);
}

}  // namespace
