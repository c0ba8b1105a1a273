// Kafka's replication by hand: what generated kernels are held against. compare.py compiles and calls it.
//
// The model that `quorisk bench` runs: 3 replicas, 4 records, 4 leader epochs, KIP-320 with all its fences, no faults,
// all rates 1. The runs are those of Quorisk's engines, bit for bit.
//
// It knows what a generated kernel is not told. Records get their ids in the order of any log, and two logs with a
// common record are the same up to it, so a log is a set of ids, and no offset or epoch is kept. A replica that is in
// the epoch of a leader that presides has a log that begins as the leader's does, so one shuffle fetches for each
// replica what it compares itself with. If there is a true leader, its ISR is the quorum's. What a leader exposes is
// committed, and stays so.

#include "lanes.hpp"

namespace {

// Replicas 0 to 2 are bytes 1 to 3 of a lane; byte 0 says nothing.
constexpr Word REPLICAS = 0x01010100;
constexpr Word LOW = 0x0f0f0f00, HIGH = 0xf0f0f000;  // halves of their bytes: sets of records or of epochs
constexpr Word EVERY_REPLICA = 0x04020100;           // replica r is bit r of a set of replicas,
constexpr Word ID = 2 * EVERY_REPLICA;               // and bit r + 1 of a set of leaders

// The word `in_isr`: a replica is in the ISR of a leader that presides, at that one's bit, or
constexpr Word IN_QUORUM_ISR = 1, LEADS_QUORUM = 16;

// The words `first` and `second`, what may happen next, in the order in which instances are drawn: where each kind
// begins, with a bit for each replica. Of receiving a request there is one for each replica and epoch.
constexpr Word EVERY = 7;
constexpr int ELECT = 0, SHRINK = 3, EXPAND_ISR = 28;  // ELECT and SHRINK: by the controller
constexpr Word LEAD = LOW;                             // become leader
constexpr int SHRINK_ISR = 0, WRITE = 3, ADVANCE = 6, FETCH = 29;
constexpr int FOLLOW = 1;                              // become follower: as in LOW, and so many bits further on

enum { WEAK_ISR, STRONG_ISR, LEADER_IN_ISR, SURVIVE, NUM_INVARIANTS };

// ---- Bytes by replica

Lanes bytes(SomeBytes some, Lanes words) { return lanes(_mm512_maskz_mov_epi8(some, raw(words))); }
Lanes bytes(SomeBytes some, Lanes yes, Lanes no) { return lanes(_mm512_mask_blend_epi8(some, raw(no), raw(yes))); }
SomeBytes have(Lanes words, Word bits) { return _mm512_test_epi8_mask(raw(words), raw(all(bits * EVERY_BYTE))); }
SomeBytes have(Lanes words, Lanes bits) { return _mm512_test_epi8_mask(raw(words), raw(bits)); }
SomeBytes lack(Lanes words, Word bits) { return _mm512_testn_epi8_mask(raw(words), raw(all(bits * EVERY_BYTE))); }
Lanes lowest_bits(Lanes words) { return words & lanes(_mm512_sub_epi8(__m512i{}, raw(words))); }

// The only byte that is not 0, in every byte.
Lanes everywhere(Lanes words) { return every_byte(sum_of_bytes(words), 0); }

// A bit for each replica whose byte is not 0, by `weights`.
Lanes set_of(Lanes words, Word weights, Lanes start = Lanes{}) {
    return sum_of_bytes(lanes(_mm512_min_epu8(raw(words), raw(all(EVERY_BYTE)))), weights, start);
}

// The replicas whose bits are set of those that begin at `place`.
SomeBytes happens(Lanes hot, int place) {
    const std::uint64_t first = place & ~7;  // moved to a replica's byte so that one move serves several places
    const std::uint64_t even = (first + 2) << 24 | (first + 1) << 16 | first << 8, odd = even + 0x20202020;
    const __m512i moved = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(odd << 32 | even), raw(hot));
    return _mm512_mask_test_epi8_mask(0xEEEEEEEEEEEEEEEE, moved, raw(all(EVERY_BYTE << (place & 7))));
}

// By epoch: it and all before it, of a leader's requests and a follower's.
constexpr Bytes UP_TO_EPOCH = [] {
    Bytes found;
    for (int quarter = 0; quarter < 64; quarter += 16) {
        for (int bit = 1; bit < 16; bit *= 2) found.each[quarter + bit] = (2 * bit - 1) * 0x11;
    }
    return found;
}();

// By leader's bit: its byte.
constexpr Bytes BYTE_OF = [] {
    Bytes found;
    for (int quarter = 0; quarter < 64; quarter += 16) {
        for (int leader = 1; leader <= 3; ++leader) found.each[quarter + (1 << leader)] = leader;
    }
    return found;
}();

Lanes looked_up(Lanes words, const Bytes& table) { return lanes(_mm512_shuffle_epi8(raw(table), raw(words))); }

struct Runs {
    static constexpr int STEP_BITS = 14, MESSAGE_BITS = 0, INVARIANTS = NUM_INVARIANTS;  // of longer runs is none
    struct Chosen {
        Lanes first, second;  // what happens next, one bit of what may
    };

    Lanes run, row, first, second;
    // By replica:
    Lanes logs;        // LOW: the records in its log; HIGH: those below its high watermark
    Lanes in_isr;      // see above
    Lanes presides;    // the epoch in which it does, if so
    Lanes follows;     // the leader that presides in its epoch, itself perhaps
    Lanes pending;     // LOW: epochs in which it may yet lead; HIGH: or follow
    Lanes in_request;  // the epochs whose request has it in the ISR
    Lanes earlier;     // the true leader's: all records when it began to lead
    Lanes exposed;     // HIGH: by it, at any time
    // The same in every byte:
    Lanes leader;  // the true leader
    Lanes record;  // the next one; 16: none is left
    Lanes epoch;   // likewise

    void begin(Some some) {
        const Lanes bit = all(EVERY_BYTE);
        row = only(~some, row);
        first = where(some, all(EVERY << ELECT | EVERY << SHRINK), first);
        second = only(~some, second);
        logs = only(~some, logs);
        in_isr = where(some, all(REPLICAS * IN_QUORUM_ISR), in_isr);
        follows = only(~some, follows);
        presides = only(~some, presides);
        pending = only(~some, pending);
        in_request = only(~some, in_request);
        leader = only(~some, leader);
        record = where(some, bit, record);
        epoch = where(some, bit, epoch);
        exposed = only(~some, exposed);
    }

    Lanes steps() const { return row; }
    Some over() const { return lacks(first | second, ~Word{0}); }

    Lanes rows() const {
        const SomeBytes leading = have(leader, all(ID));
        const Lanes uncommitted = bytes(leading, logs & ~(logs >> 4) & LOW);
        const Some completed = has(leader, ~Word{0}) & lacks(uncommitted, ~Word{0});
        return row << 2 | only(completed, all(COMPLETED));
    }

    Chosen choose(const Source& source, const Draws& draws, Lanes step) const {
        const Lanes in_first = lanes(_mm512_popcnt_epi32(raw(first)));
        const Lanes num = in_first + lanes(_mm512_popcnt_epi32(raw(second)));
        const Lanes nth = draw_below(source, draws, run, step, num);
        return {nth_bit(first, nth), nth_bit(second, nth - in_first)};
    }

    Lanes of_leaders() const {
        return lanes(_mm512_shuffle_epi8(raw(logs), raw(looked_up(follows, BYTE_OF) | in_quarters(0))));
    }

    void take(const Chosen& chosen, Lanes step, Some live, Breaches<INVARIANTS>& breaches) {
        const auto [hot, hot_2] = chosen;
        row += 1;
        act(hot);
        const Lanes received = (hot | hot_2 >> FOLLOW) & LOW;
        receive(received, hot & LEAD);
        copy(received, hot_2);
        const SomeBytes changes = happens(hot, EXPAND_ISR) | happens(hot_2, SHRINK_ISR);
        in_isr ^= bytes(changes, leader | EVERY_BYTE * IN_QUORUM_ISR);
        look();
        check(step, live, breaches);
    }

    void act(Lanes hot);
    void receive(Lanes received, Lanes lead);
    void copy(Lanes received, Lanes hot_2);
    void look();
    void check(Lanes step, Some live, Breaches<INVARIANTS>& breaches);
};

// The controller makes a request.
void Runs::act(Lanes hot) {
    const Some elects = has(hot, EVERY << ELECT), acts = has(hot, EVERY << ELECT | EVERY << SHRINK);
    const Lanes failed = bytes(happens(hot, SHRINK), all(-1));
    const Some leader_failed = has(in_isr & failed, REPLICAS * LEADS_QUORUM);
    const Some alone = leader_failed & lacks(in_isr & ~failed, REPLICAS * IN_QUORUM_ISR);
    in_isr &= ~(failed & EVERY_BYTE * (IN_QUORUM_ISR | LEADS_QUORUM));
    in_isr = where(alone, in_isr | (failed & EVERY_BYTE * IN_QUORUM_ISR), in_isr);  // the last leader stays in it
    in_isr = without(in_isr, elects, EVERY_BYTE * LEADS_QUORUM);
    in_isr |= bytes(happens(hot, ELECT), all(EVERY_BYTE * LEADS_QUORUM));
    const Lanes requested = only(acts, epoch);
    in_request |= bytes(have(in_isr, IN_QUORUM_ISR), requested);
    pending |= bytes(have(in_isr, LEADS_QUORUM), requested, requested << 4);
    epoch += requested;
    leader = only(~acts, leader);
}

// A replica receives a request, whose epoch `received` has in its byte; so has `lead` if the replica is to lead.
void Runs::receive(Lanes received, Lanes lead) {
    const SomeBytes receives = have(received, 0xff);
    const Lanes in_epoch = everywhere(received), self = everywhere(bytes(receives, all(ID)));
    pending &= ~looked_up(received, UP_TO_EPOCH);
    presides = bytes(receives, lead, presides);
    const Lanes followed = everywhere(bytes(have(presides, in_epoch), all(ID)));
    follows = bytes(receives, followed, follows & ~self);
    in_isr = (in_isr & ~self) | bytes(have(in_request, in_epoch), only(has(lead, LOW), self));
    const Some latest = has(lead & epoch >> 1, ~Word{0});
    leader = where(latest, self, leader);
    earlier = where(latest, bytes(receives, lanes(_mm512_sub_epi8(raw(record), raw(all(EVERY_BYTE))))), earlier);
}

// Records: one that receives keeps what its leader has, too; one is written or fetched, or a high watermark passes it.
void Runs::copy(Lanes received, Lanes hot_2) {
    const Lanes source = of_leaders(), held = source & LOW;
    logs = bytes(have(received, 0xff), logs & (held | held << 4), logs);
    const SomeBytes fetches = happens(hot_2, FETCH);
    const Lanes next = lowest_bits(bytes(fetches, source & ~logs, logs & ~(logs >> 4)) & LOW);
    const Lanes written = bytes(happens(hot_2, WRITE), record, bytes(fetches, next));
    logs |= bytes(happens(hot_2, ADVANCE), next << 4, written);
    logs = bytes(fetches, (logs & LOW) | (source & logs << 4 & HIGH), logs);
    const Some writes = has(hot_2, EVERY << WRITE);
    record = where(writes, record + record, record);
}

// What may happen next.
void Runs::look() {
    // the controller acts while epochs are left
    const Lanes leads_quorum = in_isr >> 4;
    const Lanes eligible = in_isr & ~leads_quorum & REPLICAS, in_use = (in_isr | leads_quorum) & REPLICAS;
    const Lanes may_act = sum_of_bytes(in_use, EVERY_REPLICA << SHRINK, sum_of_bytes(eligible, EVERY_REPLICA << ELECT));
    first = only(has(epoch, 0x0f), may_act) | (pending & LOW);

    // the true leader changes its ISR
    const Lanes source = of_leaders(), source_below = source >> 4;
    const Lanes lags = source & ~logs & LOW;
    const SomeBytes at_end = lack(lags, 0xff), at_watermark = lack(source_below & ~logs & LOW, 0xff);
    const Some ready = lacks(logs & ~(logs >> 4) & earlier, LOW);
    const Lanes may_join = set_of(bytes(at_watermark, follows & leader & ~in_isr), EVERY_REPLICA);
    first |= only(ready, may_join) << EXPAND_ISR;
    second = set_of(in_isr & leader & ~bytes(at_end, follows), EVERY_REPLICA << SHRINK_ISR);

    // all that preside write; where no member of the ISR lacks the next record, the high watermark passes it
    const Lanes presiding = set_of(presides, ID);
    const SomeBytes have_next = have(lowest_bits(source & ~source_below & LOW), logs);
    const Lanes waited_for = in_isr & ~bytes(have_next, follows);
    const Lanes may_advance = presiding & ~(waited_for >> 8 | waited_for >> 16 | waited_for >> 24);
    second |= only(has(record, 0x0f), presiding << (WRITE - 1)) | may_advance << (ADVANCE - 1);

    // followers
    const Lanes followable = every_byte(sum_of_bytes(presides, 16 * EVERY_BYTE), 0);
    second |= (pending & followable & HIGH) >> (4 - FOLLOW) | set_of(lags, EVERY_REPLICA) << FETCH;
}

[[gnu::cold, gnu::noinline]] void note(Breaches<NUM_INVARIANTS>& breaches, int invariant, SomeBytes broken, Lanes step,
                                       Some live) {
    breaches.note(invariant, live & has(bytes(broken, all(-1)), ~Word{0}), step);
}

// KIP-320 breaks no invariant: if this finds a breach, the counts are not those of the engines.
void Runs::check(Lanes step, Some live, Breaches<INVARIANTS>& breaches) {
    exposed |= bytes(have(presides, 0xff), logs);
    Lanes committed = exposed | lanes(_mm512_rol_epi32(raw(exposed), 16));
    committed |= lanes(_mm512_rol_epi32(raw(committed), 8));
    const auto lack_any = [&](SomeBytes members, Lanes records) {
        const Lanes lacking = records & ~logs & LOW;
        return _mm512_mask_test_epi8_mask(members, raw(lacking), raw(lacking));
    };
    SomeBytes weak = 0;
    for (int i = 1; i <= 3; ++i) weak |= lack_any(have(in_isr, 1 << i), every_byte(logs >> 4, i));
    const SomeBytes strong = lack_any(have(in_isr, IN_QUORUM_ISR), committed >> 4);  // the true leader is one of these
    const SomeBytes outside = have(in_isr >> 4 & ~in_isr, 1);
    if (__builtin_expect((weak | strong | outside) != 0, 0)) {
        note(breaches, WEAK_ISR, weak, step, live);
        note(breaches, STRONG_ISR, strong, step, live);
        note(breaches, LEADER_IN_ISR, outside, step, live);
    }
}

}  // namespace

extern "C" [[gnu::flatten]] void make_runs(std::uint64_t seed, std::uint64_t loss, Word first_run, Word num_runs,
                                           Counts<NUM_INVARIANTS>* counts) {
    make<Runs>(seed, loss, first_run, num_runs, *counts);
}
