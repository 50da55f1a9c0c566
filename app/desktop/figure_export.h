// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/shell.h"
#include "views/figure/spec.h"

#include <QPointer>

#include <functional>
#include <utility>
#include <vector>

namespace ponderscope {

class ExportDialog;

/// Opens the figure workbench with a figure of the window's content.
class FigureExport : public ShellPart {
    Q_OBJECT
public:
    using ShellPart::ShellPart;
    ~FigureExport() override;
    [[nodiscard]] ExportDialog* dialog() const; ///< null: not open
    /// Sets keys of a figure's specification to the state of a panel. All fillers run on each export.
    using Filler = std::function<void(figure::FigureSpec& spec)>;
    void addFiller(Filler fill) { fillers_.push_back(std::move(fill)); }

public Q_SLOTS:
    /// Opens the workbench. Does nothing without a run.
    void exportFigure(ponderscope::figure::FigureKind kind);
    /// Shows a figure as a new panel until the user closes the panel.
    void dockFigure(const ponderscope::figure::FigureSpec& spec);

private:
    std::vector<Filler> fillers_;
    QPointer<ExportDialog> exportDialog_;
    int docked_ = 0;
};

} // namespace ponderscope
