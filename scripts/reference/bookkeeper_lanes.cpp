// The small BookKeeper by hand: what generated kernels are held against. scripts/against_cpp.py compiles and calls it.
//
// The model that `quorisk bench` runs: 3 bookies, 2 clients, write quorum 3, ack quorum 2, one entry; every mechanism
// on, no fault but lost messages, all rates 1. One core makes 32 runs at a time, in the 32-bit lanes of two AVX-512
// registers. Random numbers are drawn as kernels/engines/philox.py says, so the runs are those of Quorisk's engines,
// bit for bit.
//
// It knows what a generated kernel is not told of so small a ledger: no ensemble ever changes, as there is no fourth
// bookie; every message is sent once at most; what a read finds does not change before the answer arrives, as reads
// fence; and after 38 steps at most nothing is left to do.

#if !defined(__AVX512BW__) || !defined(__AVX512VBMI__) || !defined(__AVX512BITALG__) || !defined(__AVX512VPOPCNTDQ__)
#error "needs a CPU with AVX-512 VBMI, BITALG and VPOPCNTDQ, as Intel's since Ice Lake and AMD's since Zen 4"
#endif

#include <immintrin.h>

#include <cstdint>
#include <iterator>

namespace {

using Word = std::uint32_t;
using Lanes = Word __attribute__((vector_size(64)));  // a word of each of 16 runs
using Some = __mmask16;                               // some of these runs
constexpr int GROUPS = 2;                             // of 16 runs: while one waits for its numbers, the other goes on

// ---- What is known of a run

// What may happen next, in the order in which instances are drawn; three bits are the bookies 0 to 2. A bit of a run's
// word `on_way` is a message that may arrive, or something that a client may do once. The latter has the lowest bit of
// answers of which none is on its way until it is done.
constexpr Word ADD = 7;                  // the writer's add requests
constexpr Word WRITE_BACK = 7 << 3;      // the recovering client's
constexpr Word REFUSE = 7 << 6;          // in `enabled` alone: ADD, at a bookie that is fenced
constexpr Word FENCE = 7 << 9;           // fencing requests
constexpr Word READ = 7 << 12;           // recovery reads, all of one entry
constexpr Word CONFIRMED = 7 << 15;      // answers to ADD
constexpr Word SEND_ADD = 1 << 15;
constexpr Word CREATE = 3 << 16;         // either client may create the ledger
constexpr Word REFUSED = 7 << 18;        // answers to REFUSE
constexpr Word CLOSE = 1 << 21;          // the writer closes the ledger or, once recovery has started, fails to
constexpr Word FENCED = 7 << 22;         // answers to FENCE
constexpr Word START = 1 << 22;          // recovery starts
constexpr Word ANSWERED = 7 << 25;       // answers to READ
constexpr Word SEND_READ = 1 << 25;
constexpr Word WRITTEN = 7 << 28;        // answers to WRITE_BACK
constexpr Word SEND_WRITE_BACK = 1 << 28;
constexpr Word RECOVERED = 1u << 31;     // in `enabled` alone: the recovering client closes the ledger

constexpr Word REQUESTS = ADD | WRITE_BACK | REFUSE | FENCE | READ;     // each is answered with one message
constexpr Word SENDS = SEND_ADD | START | SEND_READ | SEND_WRITE_BACK;  // each sends a request to every bookie
constexpr Word FIRST_BITS = SENDS;                                      // of answers that are counted

// The word `shut`: the bookies that are fenced, as in ADD; at its place in `on_way`, what nobody takes any more. Also
constexpr Word STORED = 7 << 6;          // the bookies that store the entry

// The word `known`: which bits of SENDS in `on_way` are no answers. Also
constexpr Word LEDGER_CLOSED = 1 << 0;
constexpr Word LOST = 1 << 1;            // data is lost
constexpr Word NEW = 1 << 3;             // the ledger is not created yet
constexpr Word UNHEARD = 7 << 12;        // the bookies to which a recovery read was lost, or from which the answer
constexpr Word ACKNOWLEDGED = 1 << 16;   // the entry, to the writer
constexpr Word FOUND = 1 << 17;          // by a recovery read. The next one is of entry 2, which nobody stores
constexpr Word BY_RECOVERY = 1 << 18;    // the ledger was closed by recovery
constexpr Word WRITING = 1u << 30;       // what was found is not on an ack quorum of bookies yet
constexpr Word AT_END = 1u << 31;        // recovery has found the last entry, and has not closed the ledger

// The word `row`: 6 bits of steps, 6 of messages, and at FIRST_BITS whether an odd number of answers of that kind has
// arrived. The ledger is created by what looks like a confirmation, which makes their number even again.
constexpr Word STEP = 1 << 2, MESSAGE = 1 << 8, COUNTS = 0xfff << 2, BEFORE_CREATION = SEND_ADD;

struct Runs {
    Lanes run, on_way, shut, known, row, enabled;
};

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

// ---- Random numbers

constexpr Word MULTIPLIER_0 = 0xD2511F53, MULTIPLIER_1 = 0xCD9E8D57, WEYL_0 = 0x9E3779B9, WEYL_1 = 0xBB67AE85;

struct Source {
    std::uint64_t seed, loss;  // the probability that a message is lost, in units of 2**-63
    Word leading;              // the 15 bits of it that are compared first
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
    Word k0 = source.seed, k1 = source.seed >> 32;
    for (int round = 0; round < 10; ++round, k0 += WEYL_0, k1 += WEYL_1) {
        for (int odd = 0; odd < 2; ++odd) {
            const __m512i p0 = _mm512_mul_epu32(c0[odd], m0), p1 = _mm512_mul_epu32(c2[odd], m1);
            c0[odd] = _mm512_srli_epi64(p1, 32) ^ c1[odd] ^ raw(all(k0));
            c2[odd] = _mm512_srli_epi64(p0, 32) ^ c3[odd] ^ raw(all(k1));
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
    for (int round = 0; round < 10; ++round, k0 += WEYL_0, k1 += WEYL_1) {
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
__m512i nth_of_nibbles() {
    alignas(64) std::uint8_t bits[64] = {};
    for (int nibble = 0; nibble < 16; ++nibble) {
        for (int bit = 1, n = 0; bit < 16; bit *= 2) {
            if (nibble & bit) bits[16 * n++ + nibble] = bit;
        }
    }
    return _mm512_load_si512(bits);
}

// The bit of each mask that has `nth` set below it: looked up in all nibbles at once.
Lanes nth_bit(Lanes mask, Lanes nth, __m512i table) {
    const __m512i low = _mm512_set1_epi8(0x0f), most = _mm512_set1_epi8(4);
    const __m512i lowest_bytes = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0);
    Lanes upto = lanes(_mm512_popcnt_epi8(raw(mask)));  // bits of each byte and of those before it in its lane
    upto += upto << 8;
    upto += upto << 16;
    const __m512i nth_of_byte = _mm512_sub_epi8(_mm512_shuffle_epi8(raw(nth), lowest_bytes), raw(upto << 8));
    const __m512i nth_of_upper = _mm512_sub_epi8(nth_of_byte, _mm512_popcnt_epi8(raw(mask) & low));
    const auto looked_up = [&](Lanes nibbles, __m512i n) {
        const __m512i index = (raw(nibbles) & low) | (raw(lanes(n) << 4) & ~low);
        return lanes(_mm512_maskz_permutexvar_epi8(_mm512_cmplt_epu8_mask(n, most), index, table));
    };
    return looked_up(mask, nth_of_byte) | looked_up(mask >> 4, nth_of_upper) << 4;
}

// What happens next, one bit of what may: all of it is as likely.
Lanes choose(const Source& source, const Draws& draws, const Runs& runs, Lanes step, __m512i table) {
    const Lanes num = lanes(_mm512_popcnt_epi32(raw(runs.enabled)));
    const __m512i even = _mm512_mul_epu32(draws.choose[0], raw(num));
    const __m512i odd = _mm512_mul_epu32(draws.choose[1], _mm512_srli_epi64(raw(num), 32));
    Lanes nth = joined(_mm512_srli_epi64(even, 32), _mm512_srli_epi64(odd, 32));
    const Some open = _mm512_cmpge_epu32_mask(raw(joined(even, odd)), raw(all(-32)));  // of 32 bits at most
    if (__builtin_expect(open != 0, 0)) {
        for (int lane = 0; lane < 16; ++lane) {
            if (open >> lane & 1) nth[lane] = settled_choice(source, runs.run[lane], step[lane], num[lane]);
        }
    }
    return nth_bit(runs.enabled, nth, table);
}

// ---- The protocol

struct Breaches {
    std::int64_t below_write_quorum, below_ack_quorum, first_steps[2];  // of closed ledgers; sums of the steps
    std::int64_t unreadable, diverged;
};

// Counts what this step has broken, and ends the runs that have lost data. `commits` are those whose ledger it closed
// with the entry.
[[gnu::cold, gnu::noinline]] void note(Runs& runs, Some live, Some commits, Breaches& breaches) {
    for (int lane = 0; lane < 16; ++lane) {
        if (!(live >> lane & 1)) continue;
        const Word known = runs.known[lane];
        const int copies = __builtin_popcount(runs.shut[lane] & STORED);
        const std::int64_t step = runs.row[lane] % MESSAGE / STEP;
        if (commits >> lane & 1 && copies < 3) ++breaches.below_write_quorum, breaches.first_steps[0] += step;
        if (commits >> lane & 1 && copies < 2) ++breaches.below_ack_quorum, breaches.first_steps[1] += step;
        const bool by_recovery = known & BY_RECOVERY, acknowledged = known & ACKNOWLEDGED, found = known & FOUND;
        const bool unreadable = copies == 0 && (acknowledged || (by_recovery && found));
        const bool diverged = by_recovery && acknowledged && !found;
        breaches.unreadable += unreadable, breaches.diverged += diverged;
        if (unreadable || diverged) runs.known[lane] |= LOST, runs.enabled[lane] = 0;
    }
}

// The runs after the step that `hot` says, and if bit j of `kept` is set its message j arrives.
void take(Runs& runs, Lanes hot, Lanes kept, Some live, Breaches& breaches) {
    Lanes on_way = runs.on_way, shut = runs.shut, known = runs.known, row = runs.row;
    const Some creates = has(known, NEW);

    // a client's own step, or else an answer by the first bit of its kind, and whether that is the second one; a third
    // one changes nothing more
    const Lanes sends = hot & known & SENDS;
    const Lanes answer = (hot | hot >> 1 | hot >> 2) & ~sends & FIRST_BITS;
    const Lanes second = answer & row;
    row ^= answer;

    // messages: a request to each bookie, or one answer
    const Lanes asks = (sends >> 15 & 1) | (sends >> 25 & 1 << 3) | (sends >> 13 & (1 << 9 | 1 << 12));
    const Lanes requests = lanes(_mm512_mullo_epi16(raw(asks), raw(kept)));
    const Lanes lost_requests = lanes(_mm512_mullo_epi16(raw(asks), raw(kept ^ 7)));
    const Lanes answers =
        (hot << 15 & CONFIRMED) | (hot << 12 & REFUSED) | (hot << 13 & (FENCED | ANSWERED)) | (hot << 25 & WRITTEN);
    const Some arrives = has(kept, 1);
    on_way &= ~(hot | (hot >> 6 & ADD));
    on_way |= requests | only(arrives, answers);
    known = (known & ~sends) | ((lost_requests | only(~arrives, hot)) & UNHEARD);
    row = plus(plus(row + STEP, has(hot, REQUESTS), MESSAGE), has(sends, SENDS), 3 * MESSAGE);

    // a bookie is fenced by FENCE and READ, and stores the entry with ADD and WRITE_BACK
    shut |= ((hot >> 9 | hot >> 12) & ADD) | ((hot << 6 | hot << 3) & STORED);

    // the writer: its entry is acknowledged with the second confirmation; it closes the ledger, or withdraws
    known |= second << 1 & ACKNOWLEDGED;
    const Some closes = has(hot, CLOSE) & has(known, START);
    known = with(known, closes, LEDGER_CLOSED);
    shut = with(shut, closes, START);
    shut = with(shut, has(hot, REFUSED | CLOSE), CONFIRMED | REFUSED | CLOSE);

    // recovery may read once two bookies are fenced, and waits for no third one when it does
    const Lanes covered = second << 3 & SEND_READ;
    on_way |= covered;
    known |= covered;
    shut = with(shut, has(sends, SEND_READ), FENCED);

    // a read ends with an answer that has the entry, the second one that has not, or too few that are still to come
    const Some reads = has(answer, SEND_READ);
    const Some finds = _mm512_mask_test_epi32_mask(reads, raw(hot), raw(shut << 19)) & lacks(known, FOUND);
    const Some misses = has(second, SEND_READ) & ~finds;
    const Lanes unheard = lanes(_mm512_popcnt_epi32(raw(known & UNHEARD)));
    const Some aborts = _mm512_mask_cmpeq_epi32_mask(reads & ~(finds | misses), raw(unheard), raw(all(2)));
    on_way = without(on_way, finds | misses | aborts, READ | ANSWERED);
    on_way = with(on_way, finds, SEND_READ | SEND_WRITE_BACK);
    known = with(known, finds, SEND_READ | SEND_WRITE_BACK | FOUND | WRITING);
    known = with(known, misses, AT_END);
    known &= ~(second << 2 & WRITING);
    row = without(row, finds, SEND_READ);

    // recovery is over
    const Some recovers = has(hot, RECOVERED);
    known = with(without(known, recovers, AT_END), recovers, LEDGER_CLOSED | BY_RECOVERY);
    shut = with(shut, recovers | aborts, WRITTEN);

    runs.on_way = on_way = where(creates, all(SEND_ADD | CLOSE | START), on_way);
    runs.known = known = where(creates, all(SEND_ADD | START), known);
    runs.shut = shut, runs.row = row;
    runs.enabled = (on_way & ~shut) | (on_way & shut & ADD) << 6 | (known & ~(known << 1) & RECOVERED);

    // invariants; copies only become more, so that closing alone leaves too few
    const Some commits = (recovers & has(known, FOUND)) | (closes & has(known, ACKNOWLEDGED));
    const Some too_few = _mm512_mask_cmpneq_epi32_mask(commits, raw(shut & STORED), raw(all(STORED)));
    const Some no_copy = lacks(shut, STORED) & has(known, ACKNOWLEDGED | FOUND);
    const Lanes end = known & (BY_RECOVERY | ACKNOWLEDGED | FOUND);
    const Some diverge = _mm512_cmpeq_epi32_mask(raw(end), raw(all(BY_RECOVERY | ACKNOWLEDGED)));
    if (__builtin_expect((too_few | no_copy | diverge) != 0, 0)) note(runs, live, commits, breaches);
}

// ---- Runs: a lane whose run has ended gets the next one

constexpr Word MOST_ROWS = 1 << 12;

struct Work {
    Word following, last;  // the run that begins next, and the one after the last
    Breaches breaches = {};
    Word num_rows = 0;
    Word rows[MOST_ROWS];     // of runs that have ended: `row`, with the first two bits of `known`
    Word seen[1 << 14] = {};  // runs by row
};

Some live(const Runs& runs, const Work& work) {
    return _mm512_cmplt_epu32_mask(raw(runs.run), raw(all(work.last)));
}

void begin(Runs& runs, Some some, Work& work) {
    const Lanes places = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    runs.run = lanes(_mm512_mask_expand_epi32(raw(runs.run), some, raw(places + work.following)));
    work.following += __builtin_popcount(some);
    runs.on_way = where(some, all(CREATE), runs.on_way);
    runs.enabled = where(some, all(CREATE), runs.enabled);
    runs.shut = only(~some, runs.shut);
    runs.known = where(some, all(NEW), runs.known);
    runs.row = where(some, all(BEFORE_CREATION), runs.row);
}

void end(const Runs& runs, Some some, Work& work) {
    const Lanes rows = (runs.row & COUNTS) | (runs.known & (LEDGER_CLOSED | LOST));
    _mm512_storeu_si512(work.rows + work.num_rows, _mm512_maskz_compress_epi32(some, raw(rows)));
    work.num_rows += __builtin_popcount(some);
}

void count_rows(Work& work) {
    for (Word i = 0; i < work.num_rows; ++i) ++work.seen[work.rows[i]];
    work.num_rows = 0;
}

// One more step of all runs; whether any of them is asked for. Part by part, so that one group has something to do
// while the other waits.
bool step(Runs (&runs)[GROUPS], const Source& source, Work& work, __m512i table) {
    Lanes number[GROUPS], kept[GROUPS], hot[GROUPS];
    Draws draws[GROUPS];
    Some any = 0;
#pragma GCC unroll GROUPS
    for (int i = 0; i < GROUPS; ++i) {
        number[i] = runs[i].row % MESSAGE / STEP + 1;
        draws[i] = draw(source, runs[i].run, number[i]);
    }
#pragma GCC unroll GROUPS
    for (int i = 0; i < GROUPS; ++i) {
        kept[i] = kept_messages(source, draws[i], runs[i].run, number[i]);
        hot[i] = choose(source, draws[i], runs[i], number[i], table);
    }
#pragma GCC unroll GROUPS
    for (int i = 0; i < GROUPS; ++i) {
        const Some asked_for = live(runs[i], work);
        any |= asked_for;
        take(runs[i], hot[i], kept[i], asked_for, work.breaches);
    }
#pragma GCC unroll GROUPS
    for (int i = 0; i < GROUPS; ++i) {
        const Some over = lacks(runs[i].enabled, ~Word{0});
        end(runs[i], over & live(runs[i], work), work);
        begin(runs[i], over, work);
    }
    return any != 0;
}

}  // namespace

// What kernels/engines/tally.py adds up, but for times.
struct Counts {
    std::int64_t completed, stuck, lost, steps, steps_squared, messages, step_histogram[32];
    Breaches breaches;
};

// Makes the runs `first_run` to `first_run` + `num_runs` - 1, and adds them to `counts`.
extern "C" [[gnu::flatten]] void bookkeeper(std::uint64_t seed, std::uint64_t loss, Word first_run, Word num_runs,
                                            Counts* counts) {
    const Word leading = loss >> 48 < 0x7fff ? loss >> 48 : 0x7fff;
    const Source source = {seed, loss, leading};
    const __m512i table = nth_of_nibbles();
    Work work;
    work.following = first_run, work.last = first_run + num_runs;
    Runs runs[GROUPS] = {};
    for (Runs& each : runs) begin(each, 0xffff, work);
    while (step(runs, source, work, table)) {
        if (work.num_rows > MOST_ROWS - 16 * GROUPS) count_rows(work);
    }
    count_rows(work);
    for (Word row = 0; row < std::size(work.seen); ++row) {
        const std::int64_t num = work.seen[row], steps = row % MESSAGE / STEP, messages = row / MESSAGE;
        if (num == 0) continue;
        (row & LOST ? counts->lost : row & LEDGER_CLOSED ? counts->completed : counts->stuck) += num;
        counts->steps += num * steps, counts->steps_squared += num * steps * steps, counts->messages += num * messages;
        counts->step_histogram[32 - __builtin_clz(steps)] += num;
    }
    counts->breaches.below_write_quorum += work.breaches.below_write_quorum;
    counts->breaches.below_ack_quorum += work.breaches.below_ack_quorum;
    counts->breaches.first_steps[0] += work.breaches.first_steps[0];
    counts->breaches.first_steps[1] += work.breaches.first_steps[1];
    counts->breaches.unreadable += work.breaches.unreadable;
    counts->breaches.diverged += work.breaches.diverged;
}
