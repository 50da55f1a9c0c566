// SPDX-License-Identifier: GPL-3.0-or-later
// TraceReader: trainings and their curves.
#include "core/trace/reader.h"
#include "core/trace/reader_impl.h"
#include "core/trace/shard_set.h"

#include <map>

namespace ponderscope {

std::vector<TrainingInfo> TraceReader::trainings() const {
    if (shards_) {
        return {}; // a training is recorded by one process
    }
    return impl_->read([&] {
        std::vector<TrainingInfo> trainings;
        Statement rows = impl_->database.prepare(
            "SELECT id, name, description, architecture, method, depth_mixing, recipe, config, device, "
            "precision, versions, parameters, max_steps, planned_steps, planned_tokens, started, step, "
            "tokens, seconds, complete, fault FROM training ORDER BY id");
        while (rows.step()) {
            TrainingInfo info;
            int i = 0;
            info.id = rows.integer(i++);
            for (std::string* text :
                 {&info.name, &info.description, &info.architecture, &info.method, &info.depth_mixing,
                  &info.recipe, &info.config, &info.device, &info.precision, &info.versions}) {
                *text = rows.text(i++);
            }
            bool sound = info.id > 0;
            for (std::int64_t* count :
                 {&info.parameters, &info.max_steps, &info.planned_steps, &info.planned_tokens}) {
                *count = rows.integer(i++);
                sound = sound && *count >= 0;
            }
            info.started = rows.text(i++);
            info.step = rows.integer(i++);
            info.tokens = rows.integer(i++);
            info.seconds = rows.real(i++);
            info.complete = rows.integer(i++) == 1;
            info.fault = rows.text(i++);
            if (!sound || info.step < 0 || info.tokens < 0 || info.max_steps >= max_training_places) {
                impl_->damaged("counts that a training can have",
                               "others in training " + std::to_string(info.id));
            }
            trainings.push_back(std::move(info));
        }
        return trainings;
    });
}

std::vector<TrainingQuantity> TraceReader::training_quantities(std::int64_t training) const {
    if (shards_) {
        return {}; // a training is recorded by one process
    }
    return impl_->read([&] {
        std::vector<TrainingQuantity> quantities;
        Statement rows =
            impl_->database.prepare("SELECT name, axis, unit, title, description FROM training_quantity "
                                    "WHERE training = ? ORDER BY name");
        rows.bind(1, training);
        while (rows.step()) {
            quantities.push_back({rows.text(0), rows.text(1), rows.text(2), rows.text(3), rows.text(4)});
        }
        return quantities;
    });
}

std::vector<TrainingCurve> TraceReader::training_curves(std::int64_t training) const {
    if (shards_) {
        return {}; // a training is recorded by one process
    }
    return impl_->read([&] {
        std::vector<TrainingCurve> curves;
        std::map<std::pair<std::string, std::int64_t>, std::size_t> places;
        Statement rows = impl_->database.prepare("SELECT step, quantity, place, tokens, seconds, value FROM "
                                                 "training_point WHERE training = ? ORDER BY step");
        rows.bind(1, training);
        while (rows.step()) {
            const std::int64_t step = rows.integer(0);
            const std::int64_t place = rows.integer(2);
            const std::int64_t tokens = rows.integer(3);
            if (step < 0 || tokens < 0 || place < 0 || place >= max_training_places) {
                impl_->damaged("points that a training can have",
                               "step " + std::to_string(step) + ", place " + std::to_string(place) + ", " +
                                   std::to_string(tokens) + " tokens");
            }
            const auto [at, fresh] = places.try_emplace({rows.text(1), place}, curves.size());
            if (fresh) {
                curves.push_back({at->first.first, place, {}, {}, {}, {}});
            }
            TrainingCurve& curve = curves[at->second];
            curve.step.push_back(step);
            curve.tokens.push_back(tokens);
            curve.seconds.push_back(rows.real(4));
            curve.value.push_back(rows.real(5));
        }
        // In the order of their names, whichever was written first.
        std::vector<TrainingCurve> sorted;
        sorted.reserve(curves.size());
        for (const auto& [name, at] : places) {
            sorted.push_back(std::move(curves[at]));
        }
        return sorted;
    });
}

} // namespace ponderscope
