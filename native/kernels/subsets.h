// Convolutions of whole numbers by tables of 16 bytes, for processors whose registers are that wide; over a type `V`,
// as in vectors.h, that also has:
//
//     Bytes, Words                           16 whole numbers of 8 bits, 8 of 16
//     kQuarters                              how many times 16 filters are summed up at a time: 4 or 2
//     bytes(p), store_bytes(p, x), add_bytes
//     eight_bytes(x)                         of a number of 64 bits, then zeros
//     with_sums_of_two(x)                    the first 8 bytes, then at even positions the sums of each two of them
//     lookup(table, which)                   0 where `which` has the highest bit
//     low_halves(x), high_halves(x)          of each byte
//     zero_words(), add_words(a, bytes)      bytes are words, two by two
//     add_odd(a, bytes)                      the odd bytes only
//     store_even(p, all, odd)                all - 256 odd
//     store_words(p, x)
//     add_each_two(a, bytes)                 the sums of two of the first 8 bytes, to 4 words or more
//     sum_words(x)                           of all words
//     dots(job, at, lower, upper, all)       2 (lower + 16 upper) - all - shifts, of 8 filters, as real numbers
#pragma once

#include "tables.h"
#include "vectors.h"

namespace dabnet {

// The two tables of 8 channels.
template <typename V>
inline void put_subset_sums(typename V::Bytes channels, std::uint8_t* out) {
    const typename V::Bytes numbers = V::with_sums_of_two(channels);
    for (int table = 0; table < 2; ++table) {
        V::store_bytes(out + 16 * table, V::add_bytes(V::lookup(numbers, V::bytes(kSubsetIndices.of[0] + 16 * table)),
                                                      V::lookup(numbers, V::bytes(kSubsetIndices.of[1] + 16 * table))));
    }
}

template <typename V>
void make_subset_sums(const std::uint8_t* bytes, std::size_t positions, std::size_t channels, std::uint8_t* lower,
                      std::uint8_t* upper, std::int32_t* sums) {
    for (std::size_t position = 0; position < positions; ++position, bytes += channels) {
        typename V::Words sum = V::zero_words();  // 8 channels add at most 510 to each, so 1,024 fit
        std::int32_t total = 0;
        for (std::size_t c = 0; c < channels; c += 8, lower += 32) {
            std::uint64_t some = 0;
            if (channels - c >= 8) {
                std::memcpy(&some, bytes + c, 8);
            } else {
                std::memcpy(&some, bytes + c, channels - c);
            }
            const typename V::Bytes eight = V::eight_bytes(some);
            sum = V::add_each_two(sum, eight);
            if (c % 1024 == 1016) {
                total += V::sum_words(sum);
                sum = V::zero_words();
            }
            if (upper == nullptr) {
                put_subset_sums<V>(eight, lower);
                continue;
            }
            put_subset_sums<V>(V::low_halves(eight), lower);
            put_subset_sums<V>(V::high_halves(eight), upper);
            upper += 32;
        }
        sums[position] = total + V::sum_words(sum);
    }
}

// The sums of `Entries` positions, or of planes of them, and 16 * `Quarters` filters from quarter `from` on.
//
// A byte that was looked up is at most 60, so four of them add up in a byte. Such bytes are added up two at a time, as
// 16 bits (`all`), and the odd ones once more on their own (`odd`), so that the even ones sum to all - 256 odd. After
// 273 times 240 that moves on to 32 bits.
template <typename V, int Entries, int Quarters>
struct SubsetTile {
    static constexpr std::size_t kMost = 273;

    typename V::Words all[Entries][Quarters], odd[Entries][Quarters];

    void run(const SubsetConvJob& job, const std::uint8_t* const* taps, int from, std::uint32_t (*sums)[64]) {
        clear();
        const std::uint8_t* weights = job.weights + 16 * from;
        std::size_t room = kMost;
        for (std::size_t run = 0; run < job.run_count; ++run) {
            const std::uint8_t* at[Entries];
            for (int e = 0; e < Entries; ++e) at[e] = taps[e] + 16 * job.runs[run];
            for (std::size_t left = job.run_length / 4, times; left != 0; left -= times) {
                if (room == 0) room = widen(from, sums);
                times = left < room ? left : room;
                for (std::size_t time = 0; time < times; ++time) accumulate<2>(at, weights);
                room -= times;
            }
            if (job.run_length % 4 == 0) continue;
            if (room == 0) room = widen(from, sums);
            accumulate<1>(at, weights);
            --room;
        }
        widen(from, sums);
    }

    void clear() {
        for (int e = 0; e < Entries; ++e) {
            for (int q = 0; q < Quarters; ++q) all[e][q] = odd[e][q] = V::zero_words();
        }
    }

    // Adds the sums of `Lines` times two rows.
    template <int Lines>
    DABNET_INLINE void accumulate(const std::uint8_t** at, const std::uint8_t*& weights) {
        using Bytes = typename V::Bytes;
        Bytes part[Entries][Quarters];
#pragma GCC unroll 2
        for (int line = 0; line < Lines; ++line, weights += 64) {
            Bytes tables[Entries][2];
            for (int e = 0; e < Entries; ++e) {
                for (int i = 0; i < 2; ++i, at[e] += 16) tables[e][i] = V::bytes(at[e]);
            }
#pragma GCC unroll 4
            for (int q = 0; q < Quarters; ++q) {
                const Bytes two = V::bytes(weights + 16 * q), low = V::low_halves(two), high = V::high_halves(two);
#pragma GCC unroll 2
                for (int e = 0; e < Entries; ++e) {
                    const Bytes found = V::add_bytes(V::lookup(tables[e][0], low), V::lookup(tables[e][1], high));
                    part[e][q] = line == 0 ? found : V::add_bytes(part[e][q], found);
                }
            }
        }
        for (int e = 0; e < Entries; ++e) {
            for (int q = 0; q < Quarters; ++q) {
                all[e][q] = V::add_words(all[e][q], part[e][q]);
                odd[e][q] = V::add_odd(odd[e][q], part[e][q]);
            }
        }
    }

    // Adds the sums to those of 32 bits; returns how many more may be added up. Even bytes are 8 filters, odd ones the
    // 8 that come 16 later.
    std::size_t widen(int from, std::uint32_t (*sums)[64]) {
        for (int e = 0; e < Entries; ++e) {
            for (int q = 0; q < Quarters; ++q) {
                std::uint16_t some[16];
                V::store_even(some, all[e][q], odd[e][q]);
                V::store_words(some + 8, odd[e][q]);
                std::uint32_t* to = sums[e] + (from + q) / 2 * 32 + (from + q) % 2 * 8;
                for (int i = 0; i < 8; ++i) {
                    to[i] += some[i];
                    to[i + 16] += some[i + 8];
                }
            }
        }
        clear();
        return kMost;
    }
};

// (scale (s . x) + offset sum(x)) + bias of one position and up to 64 filters; `upper` is null for numbers of 4 bits.
template <typename V>
void epilogue_of_subsets(const SubsetConvJob& job, std::size_t position, std::size_t n, const std::uint32_t* lower,
                         const std::uint32_t* upper) {
    const std::int32_t all = job.byte_sums[position];
    const typename V::Floats sum = V::splat(static_cast<float>(all - job.sum_shift));
    run_epilogue<V, AnyEpilogue<>>(*job.epilogue, position, job.first_filter, n,
                                   [&](std::size_t i) __attribute__((always_inline)) {
                                       const std::size_t filter = job.first_filter + i;
                                       const std::uint32_t* halves = upper == nullptr ? nullptr : upper + i;
                                       return scaled<V>(job, filter, V::dots(job, filter, lower + i, halves, all), sum);
                                   });
}

// Two positions, of which the last may stand alone, or both planes of one.
template <typename V>
void subset_conv(const SubsetConvJob& job) {
    const std::size_t n = job.epilogue->filters - job.first_filter < 64 ? job.epilogue->filters - job.first_filter : 64;
    const int quarters = n > 40 ? 4 : n > 32 ? 3 : n > 8 ? 2 : 1;  // that have a filter: 8 of each 16 come 16 later
    const std::size_t end = job.first_position + job.positions, planes = job.plane == 0 ? 1 : 2;
    for (std::size_t position = job.first_position; position < end; position += 2 / planes) {
        const std::size_t second = planes == 1 && position + 1 < end ? position + 1 : position;
        const std::uint8_t* taps[2] = {job.tables + std::size_t{16} * job.starts[position],
                                       job.tables + std::size_t{16} * job.starts[second] + job.plane};
        std::uint32_t sums[2][64] = {};
        int from = 0;
        for (; from + V::kQuarters <= quarters; from += V::kQuarters) {
            SubsetTile<V, 2, V::kQuarters>().run(job, taps, from, sums);
        }
        for (; from < quarters; ++from) SubsetTile<V, 2, 1>().run(job, taps, from, sums);
        epilogue_of_subsets<V>(job, position, n, sums[0], planes == 2 ? sums[1] : nullptr);
        if (second != position) epilogue_of_subsets<V>(job, second, n, sums[1], nullptr);
    }
}

}  // namespace dabnet
