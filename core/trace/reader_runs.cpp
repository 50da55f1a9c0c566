// SPDX-License-Identifier: GPL-3.0-or-later
// TraceReader: runs, and which part of a run a shard holds.
#include "core/base/world.h"
#include "core/remote/address.h"
#include "core/trace/reader.h"
#include "core/trace/reader_impl.h"
#include "core/trace/shard_set.h"

#include <algorithm>
#include <initializer_list>

namespace ponderscope {

std::vector<RunInfo> TraceReader::runs() const {
    if (shards_) {
        return shards_->runs();
    }
    return impl_->read([&] {
        std::vector<RunInfo> runs;
        Statement rows = impl_->database.prepare(
            "SELECT id, name, checkpoint, checkpoint_digest, architecture, method, depth_mixing, policy, "
            "scoring, device, dtype, record_level, text_source, text_digest, tokenizer_digest, versions, "
            "config, notices, seed, max_steps, layers, vocab_size, context, stride, started, seconds, "
            "complete, sequences, tokens, scored_tokens, nll_sum, steps_sum, flops_sum, scored_bytes, "
            "flops_model, step_unit, choices, training, training_step FROM run ORDER BY id");
        while (rows.step()) {
            RunInfo run;
            int i = 0;
            run.id = rows.integer(i++);
            const auto read_lines = [&](std::initializer_list<std::string*> texts) {
                for (std::string* text : texts) {
                    *text = impl_->line(rows, i++, "names of runs and of what they ran");
                }
            };
            read_lines({&run.name, &run.checkpoint, &run.checkpoint_digest, &run.architecture, &run.method,
                        &run.depth_mixing});
            run.policy = rows.text(i++); // may list the steps of every token
            read_lines({&run.scoring, &run.device, &run.dtype, &run.record_level});
            run.text_source = rows.text(i++); // names every file of a corpus
            read_lines({&run.text_digest, &run.tokenizer_digest});
            for (std::string* text : {&run.versions, &run.config, &run.notices}) {
                *text = rows.text(i++);
            }
            run.seed = static_cast<std::uint64_t>(rows.integer(i++));
            for (std::int64_t* value :
                 {&run.max_steps, &run.layers, &run.vocab_size, &run.context, &run.stride}) {
                *value = rows.integer(i++);
            }
            run.started = rows.text(i++);
            run.seconds = rows.real(i++);
            run.complete = rows.integer(i++) == 1;
            for (std::int64_t* value : {&run.sequences, &run.tokens, &run.scored_tokens}) {
                *value = rows.integer(i++);
            }
            for (double* value : {&run.nll_sum, &run.steps_sum, &run.flops_sum}) {
                *value = rows.real(i++);
            }
            run.text_bytes = rows.integer(i++);
            run.flops_model = rows.text(i++);
            run.step_unit = rows.text(i++);
            run.choices = rows.text(i++);
            run.training = rows.integer(i++);
            run.training_step = rows.integer(i++);
            if (run.tokens < 0 || run.scored_tokens < 0 || run.scored_tokens > run.tokens ||
                run.sequences < 0) {
                impl_->damaged("counts that agree in run " + std::to_string(run.id),
                               std::to_string(run.scored_tokens) + " scored of " +
                                   std::to_string(run.tokens) + " tokens in " +
                                   std::to_string(run.sequences) + " sequences");
            }
            impl_->plausible_tokens(run.tokens, run.record_level == "scalars");
            runs.push_back(std::move(run));
        }
        return runs;
    });
}

TraceReader TraceReader::open_shards(const std::vector<std::filesystem::path>& files,
                                     const std::filesystem::path& name) {
    std::vector<TraceReader> readers;
    readers.reserve(files.size());
    for (const std::filesystem::path& file : files) {
        readers.push_back(open(file));
        if (readers.back().impl_) { // together they remember about as many pages as one file does
            const std::size_t kilobytes = std::max<std::size_t>(512, 16384 / files.size());
            readers.back().impl_->database.execute("PRAGMA cache_size=-" + std::to_string(kilobytes));
        }
    }
    return TraceReader(std::make_unique<ShardSet>(name, std::move(readers)));
}

std::vector<std::filesystem::path> TraceReader::files() const {
    return shards_ ? shards_->files() : std::vector{impl_->path};
}

TraceReader TraceReader::another() const {
    return shards_ ? open_shards(files(), path()) : open(path());
}

std::shared_ptr<const void> TraceReader::hold() const {
    if (shards_) {
        return shards_->hold();
    }
    // One that grows on another machine is begun again with each call.
    if (impl_->database.in_transaction() || remote::is_remote(impl_->path)) {
        return nullptr;
    }
    auto transaction = std::make_unique<std::optional<ReadTransaction>>();
    try {
        impl_->begin(*transaction);
    } catch (const SqliteFailure& failure) {
        impl_->rethrow(failure);
    }
    impl_->held = true;
    return {transaction.release(), [impl = impl_.get()](const std::optional<ReadTransaction>* ended) {
                impl->held = false;
                delete ended;
            }};
}

std::optional<ShardInfo> TraceReader::shard(std::int64_t run) const {
    if (shards_) {
        return shards_->whole(run);
    }
    return impl_->read([&]() -> std::optional<ShardInfo> {
        Statement row = impl_->database.prepare("SELECT rank, world, batch FROM shard WHERE run = ?");
        row.bind(1, run);
        if (!row.step()) {
            return std::nullopt;
        }
        const ShardInfo info{row.integer(0), row.integer(1), row.integer(2)};
        if (info.rank < 0 || info.rank >= info.world || info.world > most_processes || info.batch < 1) {
            impl_->damaged("a place in a world of processes",
                           "rank " + std::to_string(info.rank) + " of " + std::to_string(info.world));
        }
        return info;
    });
}

} // namespace ponderscope
