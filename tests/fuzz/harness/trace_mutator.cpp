// SPDX-License-Identifier: GPL-3.0-or-later
// Changes a trace as a database: bytes of the file at times, mostly a value of a table, so that what lies
// behind the structure of the file is reached, and digests often follow, as a program that writes them anew
// would have it.
#include "core/base/splitmix.h"
#include "core/trace/digests.h"
#include "core/trace/schema.h"
#include "tests/core/trace/sample.h"
#include "tests/fuzz/harness/harness.h"

#include <sqlite3.h>

#include <array>
#include <cstring>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using namespace ponderscope;

class Draws {
public:
    explicit Draws(std::uint64_t seed) : seed_(seed) {}
    std::uint64_t below(std::uint64_t bound) { return bounded(splitmix64(seed_, n_++), bound); }

private:
    std::uint64_t seed_;
    std::uint64_t n_ = 0;
};

/// Two small traces: of steps, and of scalars, whose tokens are packed.
const std::string& sample(std::size_t which) {
    static const std::array<std::string, 2> both = [] {
        std::array<std::string, 2> made;
        for (std::size_t i = 0; i < made.size(); ++i) {
            const auto path = fuzz::folder() / ("sample" + std::to_string(i) + ".ponder");
            {
                TraceWriter writer(path, {.compress = i == 1});
                RunInfo run = ponderscope::testing::sample_run("first");
                run.record_level = i == 1 ? "scalars" : "steps";
                writer.begin_run(run, ponderscope::testing::sample_signals());
                writer.begin_sequence("text", ponderscope::testing::sample_text(24), "group");
                writer.append(ponderscope::testing::sample_tokens(1, 0, 24, 24),
                              ponderscope::testing::sample_chunks(1, 0, 24));
                writer.put_labels({{0, 4, "article"}});
                writer.end_sequence();
                writer.put_vocabulary({{0, "a"}, {1, "b"}, {7, "\xC3"}});
                writer.put_fault("A fault.");
                writer.end_run(1);
                TrainingInfo about;
                about.name = "t";
                about.recipe = about.config = about.versions = "{}";
                const std::int64_t training =
                    writer.begin_training(about, {{"loss", "", "nats", "Loss", "Of."}});
                writer.put_points(training, {1, 10, 0.5}, {{"loss", 0, 2.0}});
                writer.end_training(training, true);
                writer.finish();
            }
            // Loose tables: a stranger can put any type anywhere. Small pages: the file is small.
            ponderscope::testing::sql(
                path, "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql = replace(replace(sql, "
                      "'STRICT, WITHOUT', 'WITHOUT'), ') STRICT', ')') WHERE type = 'table'; "
                      "PRAGMA writable_schema=OFF");
            ponderscope::testing::sql(path, "PRAGMA journal_mode=DELETE; PRAGMA page_size=512; VACUUM");
            std::ifstream file(path, std::ios::binary);
            made[i].assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
        }
        return made;
    }();
    return both.at(which);
}

struct Change {
    Draws& draws;
    std::uint64_t row; ///< the one that is changed
};

/// mutated(x): another value of x's kind in the chosen row, at times of another kind.
void mutated(sqlite3_context* context, int, sqlite3_value** values) {
    auto& change = *static_cast<Change*>(sqlite3_user_data(context));
    if (change.row-- != 0) {
        sqlite3_result_value(context, values[0]);
        return;
    }
    Draws& draws = change.draws;
    const int type = sqlite3_value_type(values[0]);
    if (draws.below(8) == 0) {
        static constexpr std::array<std::int64_t, 14> numbers{
            0,         1,         -1,    2,  7, 255, 4096, 4294967295, 4294967296, 1000000000000,
            INT64_MAX, INT64_MIN, 10000, 511};
        switch (draws.below(4)) {
        case 0:
            return sqlite3_result_null(context);
        case 1:
            return sqlite3_result_double(context, draws.below(2) == 0 ? 1e308 : -0.0);
        case 2:
            return sqlite3_result_zeroblob(context, static_cast<int>(draws.below(5000)));
        default:
            return sqlite3_result_int64(context, numbers.at(draws.below(numbers.size())));
        }
    }
    if (type == SQLITE_INTEGER || type == SQLITE_FLOAT || type == SQLITE_NULL) {
        std::int64_t number = sqlite3_value_int64(values[0]);
        std::array<std::uint8_t, 8> bytes{};
        std::memcpy(bytes.data(), &number, sizeof number);
        LLVMFuzzerMutate(bytes.data(), bytes.size(), bytes.size());
        std::memcpy(&number, bytes.data(), sizeof number);
        return draws.below(2) == 0
                   ? sqlite3_result_int64(context, number)
                   : sqlite3_result_int64(context, sqlite3_value_int64(values[0]) +
                                                       static_cast<std::int64_t>(draws.below(5)) - 2);
    }
    const auto size = static_cast<std::size_t>(sqlite3_value_bytes(values[0]));
    std::vector<std::uint8_t> bytes(size + 64);
    if (size > 0) {
        std::memcpy(bytes.data(), sqlite3_value_blob(values[0]), size);
    }
    bytes.resize(LLVMFuzzerMutate(bytes.data(), size, bytes.size()));
    if (type == SQLITE_TEXT) {
        sqlite3_result_text(context, reinterpret_cast<const char*>(bytes.data()),
                            static_cast<int>(bytes.size()), SQLITE_TRANSIENT);
    } else {
        sqlite3_result_blob(context, bytes.data(), static_cast<int>(bytes.size()), SQLITE_TRANSIENT);
    }
}

void crc(sqlite3_context* context, int, sqlite3_value** values) {
    const auto size = static_cast<std::size_t>(sqlite3_value_bytes(values[0]));
    sqlite3_result_int64(
        context,
        crc32_of(std::as_bytes(std::span(static_cast<const char*>(sqlite3_value_blob(values[0])), size))));
}

/// The file with one value changed; false where it is no database any more.
bool change_a_value(std::string& file, Draws& draws) {
    sqlite3* database = nullptr;
    bool done = sqlite3_open(":memory:", &database) == SQLITE_OK;
    auto* image = static_cast<unsigned char*>(sqlite3_malloc64(file.size()));
    std::memcpy(image, file.data(), file.size());
    done = done &&
           sqlite3_deserialize(database, "main", image, static_cast<sqlite3_int64>(file.size()),
                               static_cast<sqlite3_int64>(file.size()),
                               SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE) == SQLITE_OK;
    const schema::Table& table = schema::tables()[draws.below(schema::tables().size())];
    const std::string& column = table.columns[draws.below(table.columns.size())];
    Change change{draws, draws.below(3) == 0 ? draws.below(30) : 0};
    sqlite3_create_function(database, "mutated", 1, SQLITE_UTF8, &change, mutated, nullptr, nullptr);
    sqlite3_create_function(database, "crc", 1, SQLITE_UTF8, nullptr, crc, nullptr, nullptr);
    const std::string name = schema::name_in_sql(column);
    std::string sql = "UPDATE OR IGNORE " + table.name + " SET " + name + " = mutated(" + name + ")";
    if (draws.below(2) == 0) {
        sql += "; UPDATE chunk SET crc32 = crc(data); UPDATE vocabulary SET crc32 = crc(bytes)";
    }
    done = done && sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
    sqlite3_int64 size = 0;
    if (unsigned char* bytes = done ? sqlite3_serialize(database, "main", &size, 0) : nullptr;
        bytes != nullptr) {
        file.assign(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
        sqlite3_free(bytes);
    } else {
        done = false;
    }
    sqlite3_close(database);
    return done;
}

} // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed) {
    Draws draws(seed);
    std::string file(reinterpret_cast<const char*>(data), size);
    if (size < 1024 || file.compare(0, 15, "SQLite format 3") != 0 || draws.below(50) == 0) {
        file = sample(draws.below(2));
    }
    if (draws.below(5) == 0 || !change_a_value(file, draws)) {
        std::memcpy(data, file.data(), std::min(file.size(), most));
        return LLVMFuzzerMutate(data, std::min(file.size(), most), most);
    }
    size = std::min(file.size(), most);
    std::memcpy(data, file.data(), size);
    return size;
}
