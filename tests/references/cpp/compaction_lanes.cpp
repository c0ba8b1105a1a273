// Pulsar's topic compaction by hand: what generated kernels are held against. compare.py compiles and calls
// it.
//
// The model that `quorisk bench` runs: 6 messages of 4 keys (one of them the null key, whose messages are kept) and 3
// values, 4 ledgers, 3 crashes; both orderings on, all rates 1. The runs are those of Quorisk's engines, bit for bit.
//
// It knows what a generated kernel is not told of so small a topic: no more than one of the compactor's steps may
// happen at a time; what phase one reads is what the ledger will hold; a ledger that is deleted is neither the readers'
// nor the cursor's, so that it is enough to count ledgers; nobody looks at values; and a run goes on until messages,
// ledgers and crashes are used up, which is 37 steps at most.

#include "lanes.hpp"

namespace {

constexpr Word MESSAGES = 6, KEYS = 4, VALUES = 3, LEDGERS = 4, PHASES = 6;

// What happens in a step: a message of key k is sent (VALUES k to VALUES k + 2), the compactor does what its phase
// says, or the broker crashes in that phase.
constexpr Word COMPACT = KEYS * VALUES, CRASH = COMPACT + PHASES;
enum { PHASE_ONE = COMPACT, WRITE, UPDATE_CONTEXT, UPDATE_HORIZON, PERSIST_CURSOR, DELETE_LEDGER };

// The word `row`. Counters begin where their end shows in one bit.
constexpr Word PHASE = 0x1f;                                   // PHASE_ONE, ...
constexpr Word CRASHES = 1 << 5, NO_CRASH_LEFT = 4 * CRASHES;  // begins at 1
constexpr Word LEDGER = 1 << 8, TWO_LEDGERS = 6 * LEDGER, NO_LEDGER_LEFT = LEDGERS * LEDGER;  // written so far
constexpr Word EXISTING = 1 << 11, TOO_MANY = 4 * EXISTING;    // ledgers that are not deleted; begins at 1
constexpr Word LEAKED = 1 << 14, DOUBLED = 1 << 15;            // broken before
constexpr Word STEP = 1 << 16, SENT = 1u << 29;
constexpr Word FIRST_ROW = PHASE_ONE | CRASHES | EXISTING;

enum { LEAK, HORIZON, DUPLICATE, NUM_INVARIANTS };

struct Tables {
    alignas(64) Word added[32] = {};   // to `row`, by what happens
    alignas(64) Word shifts[16] = {};  // to a message's key, by what happens
};

constexpr Tables TABLES = [] {
    Tables tables;
    for (Word i = 0; i < COMPACT; ++i) tables.added[i] = STEP + SENT, tables.shifts[i] = 8 * (i / VALUES);
    for (Word phase = 0; phase < PHASES; ++phase) {
        const bool last = phase == PHASES - 1;
        tables.added[COMPACT + phase] = STEP + (last ? -phase : 1);
        tables.added[CRASH + phase] = STEP + CRASHES - phase;
    }
    tables.added[WRITE] += LEDGER + EXISTING;
    return tables;
}();

// By a set of messages: the last one, or all up to the last one.
constexpr Bytes last_messages(bool and_before) {
    Bytes found;
    for (int messages = 1; messages < 64; ++messages) {
        int last = 32;
        while (!(messages & last)) last /= 2;
        found.each[messages] = and_before ? 2 * last - 1 : last;
    }
    return found;
}

constexpr Bytes LAST = last_messages(false), UP_TO_LAST = last_messages(true);

Lanes looked_up(Lanes bytes, const Bytes& table) { return lanes(_mm512_permutexvar_epi8(raw(bytes), raw(table))); }

struct Runs {
    static constexpr int STEP_BITS = 6, MESSAGE_BITS = 0, INVARIANTS = NUM_INVARIANTS;
    struct Chosen {
        Lanes what;  // of COMPACT + phase and CRASH + phase the lowest five bits alone
        Some sends, acts, crashes;
    };

    Lanes run, row;
    Lanes keys;  // byte k: the messages of key k; the null key is the first one
    // The next three: messages of a ledger in the first byte, those up to a horizon in the second
    Lanes read;     // by phase one
    Lanes context;  // what readers go by
    Lanes cursor;

    void begin(Some some) {
        row = where(some, all(FIRST_ROW), row);
        keys = only(~some, keys);
        context = only(~some, context);
        cursor = only(~some, cursor);
    }

    Lanes steps() const { return row / STEP & 0x3f; }
    Lanes rows() const { return steps() << 2 | COMPLETED; }
    Some may_send() const { return _mm512_cmplt_epu32_mask(raw(row), raw(all(MESSAGES * SENT))); }
    Some may_act() const {
        const Lanes stuck = all(WRITE | NO_LEDGER_LEFT);
        const Some waits = _mm512_cmpeq_epi32_mask(raw(row & (PHASE | NO_LEDGER_LEFT)), raw(stuck));
        return has(row, 7 * SENT) & ~waits;
    }
    Some may_crash() const { return lacks(row, NO_CRASH_LEFT); }
    Some over() const { return ~(may_send() | may_act() | may_crash()); }

    Chosen choose(const Source& source, const Draws& draws, Lanes step) const {
        const Some sending = may_send(), acting = may_act();
        const Lanes num = plus(plus(only(sending, all(COMPACT)), acting, 1), may_crash(), 1);
        const Lanes nth = plus(draw_below(source, draws, run, step, num), ~sending, COMPACT);
        const Some sends = _mm512_cmplt_epu32_mask(raw(nth), raw(all(COMPACT)));
        const Some acts = _mm512_mask_cmpeq_epi32_mask(acting, raw(nth), raw(all(COMPACT)));
        const Some crashes = ~(sends | acts);
        return {plus(where(sends, nth, row), crashes, PHASES), sends, acts, crashes};
    }

    void take(const Chosen& chosen, Lanes step, Some live, Breaches<INVARIANTS>& breaches) {
        const auto [what, sends, acts, crashes] = chosen;
        const Lanes phase = row & PHASE;
        const auto does = [&](Word in_phase) {
            return _mm512_mask_cmpeq_epi32_mask(acts, raw(phase), raw(all(in_phase)));
        };

        // the producer
        const __m512i shift = _mm512_permutexvar_epi32(raw(what), _mm512_load_si512(TABLES.shifts));
        const Lanes message = lanes(_mm512_maskz_sllv_epi32(sends, raw(all(1)), raw(lanes(shift) + row / SENT)));

        // the compactor: phase one reads the last message of each key, and all without one
        const Lanes last = lanes(_mm512_mask_permutexvar_epi8(raw(keys), 0xEEEEEEEEEEEEEEEE, raw(keys), raw(LAST)));
        read = where(does(PHASE_ONE), sum_of_bytes(last, EVERY_BYTE, sum_of_bytes(keys) << 8), read);
        const Some deletes = does(DELETE_LEDGER) & has(row, TWO_LEDGERS);
        cursor = where(does(PERSIST_CURSOR), context, cursor);
        context = where(does(UPDATE_CONTEXT), (context & ~0xff) | (read & 0xff), context);
        context = where(does(UPDATE_HORIZON), (context & 0xff) | (read & ~0xff), context);

        // a crash leaves what the cursor says
        context = where(crashes, cursor, context);
        keys |= message;
        row += lanes(_mm512_permutex2var_epi32(_mm512_load_si512(TABLES.added), raw(what),
                                               _mm512_load_si512(TABLES.added + 16)));
        row = plus(row, deletes, -EXISTING);

        // invariants
        const Lanes ledger = every_byte(context, 0), horizon = every_byte(context, 1);
        const Some lost = has(keys & horizon & ~looked_up(keys & ledger, UP_TO_LAST), ~Word{0});
        const Some leaked = live & has(row, TOO_MANY) & lacks(row, LEAKED);
        const Some doubled = live & has(keys & ledger & ~horizon, 0xff) & lacks(row, DOUBLED);
        breaches.note(LEAK, leaked, step);
        breaches.note(DUPLICATE, doubled, step);
        breaches.note(HORIZON, lost & live, step);  // never, with both orderings on; else in each state, not the first
        row = with(with(row, leaked, LEAKED), doubled, DOUBLED);
    }
};

}  // namespace

extern "C" [[gnu::flatten]] void make_runs(std::uint64_t seed, std::uint64_t loss, Word first_run, Word num_runs,
                                           Counts<NUM_INVARIANTS>* counts) {
    make<Runs>(seed, loss, first_run, num_runs, *counts);
}
