// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_context.h"

#include <QAbstractListModel>

#include <map>
#include <memory>
#include <vector>

namespace ponderscope {

/// Sequences of run A: number, title, mean NLL, and a strip of the NLL along the sequence.
class SequenceModel : public QAbstractListModel {
    Q_OBJECT
public:
    enum Role {
        SequenceRole = Qt::UserRole, ///< index in the trace, from 0
        NllRole,                     ///< mean, double; NaN if no token was scored
        BarcodeRole,                 ///< QList<float> of 0..1, NaN = no value; a request reads the sequence
    };
    static constexpr int bars = 72; ///< number of bars in a strip

    explicit SequenceModel(const ViewContext& context, QObject* parent = nullptr);
    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
    [[nodiscard]] QModelIndex indexOf(qint64 sequence) const;

private:
    void rebuild();
    void grow();
    [[nodiscard]] const std::vector<SequenceInfo>& sequences() const;
    [[nodiscard]] QList<float> barcode(const SequenceInfo& info) const;

    ViewContext context_;
    RunKey run_;
    std::shared_ptr<const RunContents> contents_; ///< contents of run_; null: unknown
    struct Strip {
        std::int64_t tokens = -1;
        QList<float> bars;
    };
    mutable std::map<qint64, Strip> strips_;
};

} // namespace ponderscope
