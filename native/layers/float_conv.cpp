#include "float_conv.h"

#include <algorithm>

#include "bits.h"

namespace dabnet {
namespace {

std::uint64_t filled_up(std::uint64_t filters) { return (filters + 63) / 64 * 64; }

class PlainConv : public Layer {
   public:
    PlainConv(const Kernels& kernels, const Convolution& convolution, const Epilogue& epilogue)
        : conv_(kernels, convolution), epilogue_(epilogue), is_general_(convolution.groups > 1) {}

    std::uint64_t pieces() const override { return conv_.rows(); }
    double work() const override { return conv_.work(); }
    bool is_general() const override { return is_general_; }
    std::uint64_t scratch_bytes() const override {
        Carver carver;
        conv_.carve(carver);
        return carver.bytes();
    }

    void run(const Job& job) const override {
        Carver carver(job.scratch);
        const FloatConv::Scratch scratch = conv_.carve(carver);
        const Epilogue epilogue = epilogue_.bind(job);
        if (!conv_.start(job, job.from, job.to, scratch)) return;
        for (std::size_t row = job.from; row < job.to; ++row) {
            if (!conv_.make_row(job, row, epilogue, row * conv_.columns(), scratch)) return;
        }
    }

   private:
    FloatConv conv_;
    EpilogueArrays epilogue_;
    bool is_general_;
};

}  // namespace

float real_weight(const Convolution& convolution, std::size_t filter, std::size_t i) {
    const std::size_t taps = static_cast<std::size_t>(convolution.taps()), at = filter * taps + i;
    if (convolution.weight != nullptr) return convolution.weight[at];
    const float scale = convolution.scale[filter];
    if (convolution.bits == nullptr) return static_cast<float>(convolution.int8[at]) * scale;
    const float value = bits_at(convolution.bits + filter * ((taps + 7) / 8), i, 1) != 0 ? scale : -scale;
    return convolution.offset == nullptr ? value : value + convolution.offset[filter];
}

std::uint64_t FloatConv::bytes(const Convolution& convolution) {
    return (convolution.filters * convolution.taps() + 16 + filled_up(convolution.filters)) * sizeof(float) +
           convolution.taps() * sizeof(std::size_t);
}

FloatConv::FloatConv(const Kernels& kernels, const Convolution& convolution)
    : kernels_(kernels),
      convolution_(convolution),
      weights_((convolution.filters * static_cast<std::size_t>(convolution.taps()) + 15) / 16),
      bias_(static_cast<std::size_t>(filled_up(convolution.filters))) {
    const std::size_t taps = most_terms();
    for (std::size_t filter = 0; filter < convolution.filters; ++filter) {
        const std::size_t group = filter / group_filters();
        float* to = weights_.data()->numbers + group * taps * group_filters() + filter % group_filters();
        for (std::size_t i = 0; i < taps; ++i, to += group_filters()) {
            *to = real_weight(convolution, filter, i);
        }
    }
    if (convolution.bias != nullptr) std::copy(convolution.bias, convolution.bias + convolution.filters, bias_.begin());
    const Shape& input = convolution.input;
    for (std::size_t i = 0; has_short_rows() && i < taps; ++i) {
        offsets_.push_back(i / row_taps() * convolution.window.height.dilation * input.width * input.channels +
                           i % row_taps());
    }
}

// A row of windows looks for inked columns in all rows that it sees.
double FloatConv::work() const {
    const auto& [height, width] = convolution_.window;
    const double looked_at = static_cast<double>(height.positions) * static_cast<double>(height.kernel) *
                             static_cast<double>(convolution_.input.width);
    return convolution_.multiply_adds() + looked_at + static_cast<double>(convolution_.input.count());
}

FloatConv::Scratch FloatConv::carve(Carver& carver) const {
    const std::uint64_t terms = convolution_.taps();
    const Shape& input = convolution_.input;
    const bool lists = !has_short_rows();
    return {carver.take<Term>(terms),
            carver.take<std::size_t>((terms + kPart - 1) / kPart),
            carver.take<float>(filled_up(convolution_.filters)),
            carver.take<std::uint64_t>(lists ? 0 : std::uint64_t{input.height} * row_words()),
            carver.take<std::uint64_t>(lists ? 0 : row_words()),
            carver.take<std::uint64_t>(lists ? 0 : terms / kPart + 1),
            carver.take<Ink>(lists ? input.count() + 1 : 0),
            carver.take<std::uint32_t>(lists ? input.positions() * convolution_.groups + 1 : 0),
            carver.take<std::uint32_t>(lists ? input.width + 1 : 0)};
}

bool FloatConv::start(const Job& job, std::size_t from, std::size_t to, const Scratch& scratch) const {
    const Axis& height = convolution_.window.height;
    const Shape& input = convolution_.input;
    std::size_t top = input.height, bottom = 0;
    for (std::size_t row = from; row < to; ++row) {
        if (height.first(row) == height.end(row)) continue;
        top = std::min(top, height.at(row, height.first(row)));
        bottom = std::max(bottom, height.at(row, height.end(row) - 1) + 1);
    }
    if (!has_short_rows()) return list_ink(job, top, bottom, scratch);
    for (std::size_t row = top; row < bottom; ++row) {
        if (job.is_stopped(row_bits())) return false;
        find_bits(job.input<float>() + row * input.width * input.channels, scratch.bits + row * row_words());
    }
    return true;
}

// Most of paper is blank, and a ReLU leaves much that is.
bool FloatConv::list_ink(const Job& job, std::size_t top, std::size_t bottom, const Scratch& scratch) const {
    const Shape& input = convolution_.input;
    const std::size_t group_channels = convolution_.group_channels();
    const auto* x = job.input<float>();
    std::uint32_t count = 0;
    for (std::size_t row = top; row < bottom; ++row) {
        if (job.is_stopped(input.width * input.channels)) return false;
        for (std::size_t column = 0; column < input.width; ++column) {
            const std::size_t position = row * input.width + column;
            for (std::size_t group = 0; group < convolution_.groups; ++group) {
                const std::size_t at = position * convolution_.groups + group;
                scratch.starts[at] = count;
                const float* channels = x + at * group_channels;
                const std::size_t first = column * group_channels;
                for (std::size_t channel = 0; channel < group_channels; ++channel) {  // without a branch to guess
                    scratch.ink[count] = {channels[channel], static_cast<std::uint32_t>(first + channel)};
                    count += channels[channel] != 0;
                }
            }
            scratch.starts[(position + 1) * convolution_.groups] = count;
        }
    }
    return true;
}

bool FloatConv::make_row(const Job& job, std::size_t row, const Epilogue& epilogue, std::size_t position,
                         const Scratch& scratch, bool* left_out) const {
    if (job.is_stopped(convolution_.window.height.kernel * convolution_.input.width)) return false;
    const bool has_short = has_short_rows();
    has_short ? find_seen(row, scratch) : find_inked_columns(scratch.starts, row, scratch.inked);
    for (std::size_t column = 0; column < columns(); ++column, ++position) {
        const bool blank = has_short ? row_ink(scratch.seen, column) == 0 : is_blank(scratch.inked, column);
        if (left_out != nullptr) left_out[column] = blank;
        if (left_out != nullptr && blank) continue;
        if (!blank && has_short) {
            if (job.is_stopped(most_terms() * (convolution_.filters / 8 + 1))) return false;
            sum_ink(job.input<float>(), row, column, scratch);
        }
        for (std::size_t group = 0; group < convolution_.groups && !blank && !has_short; ++group) {
            const std::size_t parts = gather(row, column, group, scratch), first = group * group_filters();
            const std::size_t terms = parts == 0 ? 0 : scratch.ends[parts - 1];
            if (job.is_stopped(terms * (group_filters() / 8 + 1))) return false;
            kernels_.float_conv(
                {scratch.terms, scratch.ends, parts, group_filters(), bias_.data() + first, scratch.sums + first});
        }
        if (job.is_stopped(convolution_.filters)) return false;
        run_epilogue(kernels_, epilogue, position, blank ? bias_.data() : scratch.sums);
    }
    return true;
}

bool FloatConv::has_short_rows() const {
    return convolution_.groups == 1 && convolution_.window.width.dilation == 1 && row_taps() <= 64;
}

// Padding is blank.
void FloatConv::find_bits(const float* x, std::uint64_t* bits) const {
    const std::size_t first = convolution_.window.width.before * convolution_.input.channels;
    const std::size_t end = std::min(first + convolution_.input.width * convolution_.input.channels, row_bits());
    for (std::size_t word = 0; word < row_words(); ++word) {
        std::uint64_t found = 0;
        for (std::size_t at = std::max(first, 64 * word); at < std::min(end, 64 * word + 64); ++at) {
            found |= std::uint64_t{x[at - first] != 0} << (at - 64 * word);
        }
        bits[word] = found;
    }
}

// Puts the rows that a row of windows sees on top of each other.
void FloatConv::find_seen(std::size_t row, const Scratch& scratch) const {
    const Axis& height = convolution_.window.height;
    std::fill(scratch.seen, scratch.seen + row_words(), std::uint64_t{0});
    for (std::size_t i = height.first(row); i < height.end(row); ++i) {
        const std::uint64_t* bits = scratch.bits + height.at(row, i) * row_words();
        for (std::size_t word = 0; word < row_words(); ++word) scratch.seen[word] |= bits[word];
    }
}

// What a window at a column sees of a row of bits.
inline std::uint64_t FloatConv::row_ink(const std::uint64_t* bits, std::size_t column) const {
    const std::size_t at = column * convolution_.window.width.stride * convolution_.input.channels;
    const std::uint64_t* words = bits + at / 64;
    return (words[0] >> at % 64 | words[1] << 1 << (63 - at % 64)) & ~std::uint64_t{0} >> (64 - row_taps());
}

// Finds a bit for each tap of a position, one row of the window after the other.
void FloatConv::find_ink(std::size_t row, std::size_t column, const Scratch& scratch) const {
    const Axis& height = convolution_.window.height;
    const std::size_t taps = row_taps(), first = height.first(row), end = height.end(row);
    std::uint64_t *to = scratch.under, word = 0;
    std::size_t shift = 0;
    for (std::size_t i = 0; i < height.kernel; ++i) {
        const bool is_inside = i >= first && i < end;
        const std::uint64_t ink = is_inside ? row_ink(scratch.bits + height.at(row, i) * row_words(), column) : 0;
        word |= ink << shift;
        shift += taps;
        if (shift < 64) continue;
        *to++ = word;
        shift -= 64;
        word = shift == 0 ? 0 : ink >> (taps - shift);
    }
    if (shift != 0) *to = word;
}

// Sums a position of a window with short rows.
void FloatConv::sum_ink(const float* x, std::size_t row, std::size_t column, const Scratch& scratch) const {
    const auto& [height, width] = convolution_.window;
    const std::size_t line = convolution_.input.width * convolution_.input.channels;
    find_ink(row, column, scratch);
    // The top left tap may lie before the map: unsigned numbers go round, and come back with the offset.
    const std::size_t first = (row * height.stride - height.before) * line +
                              (column * width.stride - width.before) * convolution_.input.channels;
    const float* weights = weights_.data()->numbers;
    const std::size_t parts = (most_terms() + kPart - 1) / kPart, filters = convolution_.filters;
    if (kernels_.ink_conv != nullptr) {
        return kernels_.ink_conv(
            {scratch.under, parts, x, first, offsets_.data(), weights, filters, bias_.data(), scratch.sums});
    }
    std::size_t count = 0;
    for (std::size_t part = 0; part < parts; ++part) {
        for (std::uint64_t ink = scratch.under[part]; ink != 0; ink &= ink - 1) {
            const std::size_t tap = part * kPart + lowest_bit(ink);
            scratch.terms[count++] = {x[first + offsets_[tap]], weights + tap * filters};
        }
        scratch.ends[part] = count;
    }
    kernels_.float_conv({scratch.terms, scratch.ends, parts, filters, bias_.data(), scratch.sums});
}

// Counts, for each column, those before it that have ink in what a row of windows sees.
void FloatConv::find_inked_columns(const std::uint32_t* starts, std::size_t row, std::uint32_t* inked) const {
    const Axis& height = convolution_.window.height;
    const std::size_t columns = convolution_.input.width, groups = convolution_.groups;
    std::fill(inked, inked + columns + 1, 0u);
    for (std::size_t i = height.first(row); i < height.end(row); ++i) {
        const std::uint32_t* start = starts + height.at(row, i) * columns * groups;
        if (groups == 1) {  // several columns at a time
            for (std::size_t column = 0; column < columns; ++column) {
                inked[column + 1] |= start[column] != start[column + 1];
            }
            continue;
        }
        for (std::size_t column = 0; column < columns; ++column) {
            inked[column + 1] |= start[column * groups] != start[(column + 1) * groups];
        }
    }
    for (std::size_t column = 0; column < columns; ++column) inked[column + 1] += inked[column];
}

bool FloatConv::is_blank(const std::uint32_t* inked, std::size_t column) const {
    const Axis& width = convolution_.window.width;
    const std::size_t left = width.first(column), right = width.end(column);
    return left == right || inked[width.at(column, left)] == inked[width.at(column, right - 1) + 1];
}

// Collects the ink under the window. Returns the number of parts.
std::size_t FloatConv::gather(std::size_t row, std::size_t column, std::size_t group, const Scratch& scratch) const {
    const auto& [height, width] = convolution_.window;
    const std::size_t groups = convolution_.groups, channels = convolution_.group_channels(), filters = group_filters();
    const float* group_weights = weights_.data()->numbers + group * most_terms() * filters;
    // Taps that nothing lies between are seen at once.
    const std::size_t left = width.first(column), right = width.end(column);
    const std::size_t at_once = groups == 1 && width.dilation == 1 ? right - left : 1;
    std::size_t count = 0, parts = 0, part = 0;
    for (std::size_t i = height.first(row); i < height.end(row); ++i) {
        const std::uint32_t* starts_row = scratch.starts + height.at(row, i) * convolution_.input.width * groups;
        for (std::size_t j = left; j < right; j += at_once) {
            const std::size_t at = width.at(column, j);
            const std::uint32_t* start = starts_row + at * groups + group;
            const std::size_t tap = i * width.kernel + j;
            const Ink *dot = scratch.ink + start[0], *const end = scratch.ink + start[at_once];
            for (; dot != end; ++dot) {
                const std::size_t weight = tap * channels + (dot->at - at * channels);
                if (weight / kPart != part) {
                    if (count != 0) scratch.ends[parts++] = count;
                    part = weight / kPart;
                }
                scratch.terms[count++] = {dot->x, group_weights + weight * filters};
            }
        }
    }
    if (count != 0) scratch.ends[parts++] = count;
    return parts;
}

std::unique_ptr<Layer> make_float_conv(const Builder& builder, const Convolution& convolution, const Epilogue& epilogue,
                                       const Window* pool) {
    // Ink is counted in 32 bits.
    if (convolution.input.count() > UINT32_MAX || !builder.budget.take(FloatConv::bytes(convolution))) return nullptr;
    if (pool != nullptr) return make_pooled_conv(builder.kernels, convolution, epilogue, *pool);
    return std::make_unique<PlainConv>(builder.kernels, convolution, epilogue);
}

std::unique_ptr<Layer> make_convolution(const Builder& builder, const Convolution& convolution,
                                        const Epilogue& epilogue, const Window* pool) {
    if (!builder.budget.take(EpilogueArrays::bytes(epilogue))) return nullptr;
    if (convolution.input.is_bits()) {
        if (has_lut_conv(builder.kernels, convolution)) return make_lut_conv(builder, convolution, epilogue);
        if (has_byte_conv(convolution)) return make_byte_conv(builder, convolution, epilogue);
        return has_count_conv(builder.kernels, convolution) ? make_count_conv(builder, convolution, epilogue)
                                                            : make_bit_conv(builder, convolution, epilogue);
    }
    if (convolution.bits != nullptr && convolution.input.is_whole()) {
        return has_subset_conv(builder.kernels, convolution) ? make_subset_conv(builder, convolution, epilogue)
                                                             : make_whole_conv(builder, convolution, epilogue);
    }
    if (pool == nullptr && has_group_conv(convolution)) return make_group_conv(builder, convolution, epilogue);
    return convolution.bits != nullptr && has_sum_conv(convolution)
               ? make_sum_conv(builder, convolution, epilogue)
               : make_float_conv(builder, convolution, epilogue, pool);
}

}  // namespace dabnet
