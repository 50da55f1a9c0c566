// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_context.h"

#include <QStandardItemModel>

namespace ponderscope {

/// Open traces, and below each its runs. Items hold their keys; everything else is read from the data when it
/// is requested.
class LibraryModel : public QStandardItemModel {
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

    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
    /// Asks for another name of a run and changes nothing here.
    bool setData(const QModelIndex& index, const QVariant& value, int role) override;

    [[nodiscard]] QModelIndex indexOf(const RunKey& key) const;

Q_SIGNALS:
    void renameRequested(const ponderscope::RunKey& run, const QString& name);

private:
    void synchronise(const QString& path);
    void touch(const QModelIndex& index); ///< has other data now, and so have the runs below it
    [[nodiscard]] QVariant traceData(const QString& path, int role) const;
    [[nodiscard]] QVariant runData(const RunKey& key, int role) const;

    ViewContext context_;
};

} // namespace ponderscope
