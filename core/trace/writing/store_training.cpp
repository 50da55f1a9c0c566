// SPDX-License-Identifier: GPL-3.0-or-later
// TraceStore: trainings and their curves.
#include "core/trace/rows.h"
#include "core/trace/writing/store.h"


namespace ponderscope {

void TraceStore::prepare_training_statements() {
    insert_training_ = database_.prepare(schema::insert_into("training"));
    insert_quantity_ = database_.prepare(schema::insert_into("training_quantity"));
    insert_point_ = database_.prepare("INSERT OR REPLACE INTO training_point (training, step, quantity, "
                                      "place, tokens, seconds, value) VALUES (?,?,?,?,?,?,?)");
    update_training_ =
        database_.prepare("UPDATE training SET step=?, tokens=?, seconds=?, complete=0, fault='' WHERE id=?");
    end_training_ = database_.prepare("UPDATE training SET complete=?, fault=? WHERE id=?");
}

void TraceStore::begin_training(const TrainingInfo& info, const std::vector<TrainingQuantity>& quantities) {
    begin();
    TrainingInfo row = info;
    row.step = row.tokens = 0;
    row.seconds = 0;
    row.complete = false;
    row.fault.clear();
    schema::bind_row(insert_training_, row);
    insert_training_.run();
    for (const TrainingQuantity& quantity : quantities) {
        schema::bind_row(insert_quantity_, quantity);
        insert_quantity_.bind(1, info.id);
        insert_quantity_.run();
    }
}

void TraceStore::put_points(std::int64_t training, const TrainingMoment& moment,
                            const std::vector<TrainingValue>& values) {
    begin();
    for (const TrainingValue& value : values) {
        insert_point_.run(training, moment.step, value.quantity, value.place, moment.tokens, moment.seconds,
                          value.value);
    }
    update_training_.run(moment.step, moment.tokens, moment.seconds, training);
}

void TraceStore::end_training(std::int64_t training, bool complete, const std::string& fault) {
    begin();
    end_training_.run(complete, fault, training);
}

void TraceStore::cut_training(std::int64_t training, std::int64_t step) {
    begin();
    const std::string of = " WHERE training = " + std::to_string(training);
    const std::string after = std::to_string(step);
    const std::string points = " FROM training_point" + of;
    database_.execute("DELETE" + points + " AND step > " + after);
    const auto newest = [&](const char* column) {
        return std::string("coalesce((SELECT max(") + column + ")" + points + "), 0)";
    };
    database_.execute("UPDATE training SET complete = 0, fault = '', step = " + newest("step") +
                      ", tokens = " + newest("tokens") + ", seconds = " + newest("seconds") +
                      " WHERE id = " + std::to_string(training));
}

} // namespace ponderscope
