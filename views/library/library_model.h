// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_context.h"

#include <QAbstractItemModel>

#include <vector>

namespace ponderscope {

/// Open traces, and below each its runs.
class LibraryModel : public QAbstractItemModel {
    Q_OBJECT
public:
    enum Role {
        KeyRole = Qt::UserRole, ///< RunKey (of a trace: its path with run 0)
        ColourRole,             ///< QColor of a run
        DetailRole,             ///< "NLL 3.214   steps 2.31"; of a trace: "not saved", or empty
        PolicyRole,             ///< "entropy:theta=2.5"; empty for the checkpoint's own
        SideRole,               ///< "A", "B", "AB" or empty
        StateRole,              ///< "partial", or empty
    };

    explicit LibraryModel(const ViewContext& context, QObject* parent = nullptr);

    [[nodiscard]] QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
    [[nodiscard]] QModelIndex parent(const QModelIndex& index) const override;
    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;

    /// A run's name can be edited, which asks for it and changes nothing here.
    [[nodiscard]] Qt::ItemFlags flags(const QModelIndex& index) const override;
    bool setData(const QModelIndex& index, const QVariant& value, int role) override;

    [[nodiscard]] QModelIndex indexOf(const RunKey& key) const;

Q_SIGNALS:
    void renameRequested(const ponderscope::RunKey& run, const QString& name);

private:
    struct Trace {
        QString path;
        std::vector<RunInfo> runs;
        quintptr id; ///< in the indexes of its runs, which views keep while rows above come and go
    };
    [[nodiscard]] int row_of(quintptr id) const; ///< -1: it was closed
    void synchronise(const QString& path);
    void renewRun(const RunKey& key);
    void remove(const QString& path);
    void touchAll();
    [[nodiscard]] QVariant traceData(const Trace& trace, int role) const;
    [[nodiscard]] QVariant runData(const Trace& trace, const RunInfo& run, int role) const;

    ViewContext context_;
    std::vector<Trace> traces_;
    quintptr last_id_ = 0;
};

} // namespace ponderscope
