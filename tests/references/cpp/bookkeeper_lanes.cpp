// The small BookKeeper by hand: what generated kernels are held against. compare.py compiles and calls it.
//
// The model that `quorisk bench` runs: 3 bookies, 2 clients, write quorum 3, ack quorum 2, one entry; every mechanism
// on, no fault but lost messages, all rates 1. The runs are those of Quorisk's engines, bit for bit.
//
// It knows what a generated kernel is not told of so small a ledger: no ensemble ever changes, as there is no fourth
// bookie; every message is sent once at most; what a read finds does not change before the answer arrives, as reads
// fence; and after 38 steps at most nothing is left to do.

#include "lanes.hpp"

namespace {

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
constexpr Word LEDGER_CLOSED = COMPLETED;
constexpr Word DATA_LOST = LOST;
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

enum { DIVERGED, UNREADABLE, BELOW_ACK_QUORUM, BELOW_WRITE_QUORUM, NUM_INVARIANTS };

struct Runs {
    static constexpr int STEP_BITS = 6, MESSAGE_BITS = 6, INVARIANTS = NUM_INVARIANTS;
    struct Chosen {
        Lanes hot, kept;  // what happens next, one bit of what may; bit j: its message j arrives
    };

    Lanes run, on_way, shut, known, row, enabled;

    void begin(Some some) {
        on_way = where(some, all(CREATE), on_way);
        enabled = where(some, all(CREATE), enabled);
        shut = only(~some, shut);
        known = where(some, all(NEW), known);
        row = where(some, all(BEFORE_CREATION), row);
    }

    Lanes steps() const { return row % MESSAGE / STEP; }
    Lanes rows() const { return (row & COUNTS) | (known & (LEDGER_CLOSED | DATA_LOST)); }
    Some over() const { return lacks(enabled, ~Word{0}); }

    // All that may happen is as likely.
    Chosen choose(const Source& source, const Draws& draws, Lanes step) const {
        const Lanes num = lanes(_mm512_popcnt_epi32(raw(enabled)));
        const Lanes nth = draw_below(source, draws, run, step, num);
        return {nth_bit(enabled, nth), kept_messages(source, draws, run, step)};
    }

    void take(const Chosen& chosen, Lanes step, Some live, Breaches<INVARIANTS>& breaches);
    void note(Lanes step, Some live, Some commits, Breaches<INVARIANTS>& breaches);
};

// ---- The protocol

// Counts what this step has broken, and ends the runs that have lost data. `commits` are those whose ledger it closed
// with the entry.
[[gnu::cold, gnu::noinline]] void Runs::note(Lanes step, Some live, Some commits, Breaches<INVARIANTS>& breaches) {
    const Lanes copies = lanes(_mm512_popcnt_epi32(raw(shut & STORED)));
    const Some none = lacks(shut, STORED), acknowledged = has(known, ACKNOWLEDGED), found = has(known, FOUND);
    const Some by_recovery = has(known, BY_RECOVERY);
    const Some unreadable = live & none & (acknowledged | (by_recovery & found));
    const Some diverged = live & by_recovery & acknowledged & ~found;
    breaches.note(DIVERGED, diverged, step);
    breaches.note(UNREADABLE, unreadable, step);
    breaches.note(BELOW_ACK_QUORUM, live & commits & _mm512_cmplt_epu32_mask(raw(copies), raw(all(2))), step);
    breaches.note(BELOW_WRITE_QUORUM, live & commits & _mm512_cmplt_epu32_mask(raw(copies), raw(all(3))), step);
    known = with(known, unreadable | diverged, DATA_LOST);
    enabled = only(~(unreadable | diverged), enabled);
}

void Runs::take(const Chosen& chosen, Lanes step, Some live, Breaches<INVARIANTS>& breaches) {
    const auto [hot, kept] = chosen;
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

    on_way = where(creates, all(SEND_ADD | CLOSE | START), on_way);
    known = where(creates, all(SEND_ADD | START), known);
    enabled = (on_way & ~shut) | (on_way & shut & ADD) << 6 | (known & ~(known << 1) & RECOVERED);

    // invariants; copies only become more, so that closing alone leaves too few
    const Some commits = (recovers & has(known, FOUND)) | (closes & has(known, ACKNOWLEDGED));
    const Some too_few = _mm512_mask_cmpneq_epi32_mask(commits, raw(shut & STORED), raw(all(STORED)));
    const Some no_copy = lacks(shut, STORED) & has(known, ACKNOWLEDGED | FOUND);
    const Lanes end = known & (BY_RECOVERY | ACKNOWLEDGED | FOUND);
    const Some diverge = _mm512_cmpeq_epi32_mask(raw(end), raw(all(BY_RECOVERY | ACKNOWLEDGED)));
    if (__builtin_expect((too_few | no_copy | diverge) != 0, 0)) note(step, live, commits, breaches);
}

}  // namespace

extern "C" [[gnu::flatten]] void make_runs(std::uint64_t seed, std::uint64_t loss, Word first_run, Word num_runs,
                                           Counts<NUM_INVARIANTS>* counts) {
    make<Runs>(seed, loss, first_run, num_runs, *counts);
}
