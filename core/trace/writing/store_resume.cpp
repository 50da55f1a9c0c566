// SPDX-License-Identifier: GPL-3.0-or-later
// TraceStore: runs that are taken up again.
#include "core/base/error.h"
#include "core/trace/packed_values.h"
#include "core/trace/rows.h"
#include "core/trace/tools/run_edits.h"
#include "core/trace/writing/store.h"

namespace ponderscope {

TraceStore::Resumed TraceStore::resume_run(std::int64_t run, const std::vector<SignalInfo>& signals) {
    begin();
    const std::string number = std::to_string(run);
    std::int64_t tokenizer = 0;
    {
        Statement row = database_.prepare("SELECT seconds, tokenizer, record_level FROM run WHERE id = ?");
        row.bind(1, run);
        const bool found = row.step();
        take_up(run, found ? row.text(2) : "");
        run_seconds_before_ = found ? row.real(0) : 0;
        tokenizer = found ? row.integer(1) : 0;
    }
    std::vector<std::int64_t> unfinished;
    {
        Statement rows = database_.prepare("SELECT " + schema::columns_of("sequence") +
                                           " FROM sequence WHERE run = ? ORDER BY number");
        rows.bind(1, run);
        while (rows.step()) {
            const auto sequence = schema::read_row<SequenceInfo>(
                rows, [&](const std::string& expected, const std::string& found) {
                    throw InputError(path_, expected, found, "record the run again");
                });
            if (!sequence.complete || !unfinished.empty()) {
                unfinished.push_back(sequence.id);
                continue;
            }
            // In the order in which they were recorded: the sums are what they would have been.
            run_totals_ += sequence;
            ++run_sequences_;
        }
    }
    for (const std::int64_t sequence : unfinished) {
        delete_contents(database_, sequence);
        database_.execute("DELETE FROM sequence WHERE id = " + std::to_string(sequence));
    }
    database_.execute("DELETE FROM fault WHERE run = " + number);
    for (const SignalInfo& signal : with_packed_tokens(signals)) {
        Statement find = database_.prepare("SELECT id FROM signal WHERE run = ? AND name = ?");
        find.bind_all(run, signal.name);
        if (find.step()) {
            signals_[signal.name] = {find.integer(0), signal.storage};
        }
    }
    write_run_totals();
    return {run_sequences_, database_.integer("SELECT max(id) FROM sequence"), tokenizer, packed_};
}

} // namespace ponderscope
