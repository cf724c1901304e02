// A small, strict reader of JSON for headers that strangers wrote.
//
// Libraries that fit were weighed: nlohmann's and RapidJSON's report errors by exceptions or take repeated keys,
// simdjson needs threads' worth of code for gigabytes per second, and all are larger than the rest of the parser. What
// a header needs is little: bounded depth and memory (16 bytes for each value), no repeated keys, valid UTF-8. NaN and
// Infinity, which Python writes, are read as numbers that are not finite, so that a sentence can name the entry that
// has one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dabnet {

class Json;

// The values of a text, one after the other as they stand in it; the text has to outlive it.
class JsonDocument {
   public:
    // Whether `text` is JSON, of at most 4 GiB.
    bool parse(std::string_view text);
    Json root() const;

   private:
    friend class Json;
    friend class JsonParser;
    enum class Kind : std::uint8_t { kNull, kFalse, kTrue, kInteger, kReal, kText, kList, kObject };
    struct Token {
        std::uint32_t from;      // in the text; of texts without their quotes
        std::uint32_t length;    // in the text
        std::uint32_t end;       // the token after this value
        std::uint32_t kind : 8;  // Kind
        std::uint32_t count : 24;
    };

    std::string_view text_;
    std::vector<Token> tokens_;
};

// One value of a document.
class Json {
   public:
    bool is_object() const { return kind() == Kind::kObject; }
    bool is_list() const { return kind() == Kind::kList; }
    bool is_text() const { return kind() == Kind::kText; }
    bool is_null() const { return kind() == Kind::kNull; }
    bool is_integer() const { return kind() == Kind::kInteger; }
    bool is_number() const { return is_integer() || kind() == Kind::kReal; }

    // How many items or entries it has.
    std::size_t size() const { return token().count; }
    // A text, its escapes undone.
    std::string text() const;
    // The nearest float64; infinite where that is too large.
    double number() const;
    // A number as it stands in the text.
    std::string_view source() const { return document_->text_.substr(token().from, token().length); }
    // An integer of at most `most`; false if it is none.
    bool integer(std::uint64_t most, std::uint64_t& value) const;

    // As Python writes it, the first `most` characters.
    std::string describe(std::size_t most) const;

    // Calls visit(item) for each item of a list, or visit(key, value) for each entry of an object, until one returns
    // false; returns whether none did.
    template <typename Visit>
    bool each_item(Visit visit) const {
        std::uint32_t at = index_ + 1;
        for (std::size_t i = 0; i < size(); ++i, at = document_->tokens_[at].end) {
            if (!visit(Json(document_, at))) return false;
        }
        return true;
    }
    template <typename Visit>
    bool each_entry(Visit visit) const {
        std::uint32_t at = index_ + 1;
        for (std::size_t i = 0; i < size(); ++i, at = document_->tokens_[at + 1].end) {
            if (!visit(Json(document_, at).text(), Json(document_, at + 1))) return false;
        }
        return true;
    }
    // The entry of this name, if there is one.
    bool find(std::string_view name, Json& value) const;

    Json() = default;

   private:
    friend class JsonDocument;
    using Kind = JsonDocument::Kind;
    Json(const JsonDocument* document, std::uint32_t index) : document_(document), index_(index) {}
    const JsonDocument::Token& token() const { return document_->tokens_[index_]; }
    Kind kind() const { return static_cast<Kind>(token().kind); }
    void describe_into(std::string& said, std::size_t most_bytes) const;

    const JsonDocument* document_ = nullptr;
    std::uint32_t index_ = 0;
};

}  // namespace dabnet
