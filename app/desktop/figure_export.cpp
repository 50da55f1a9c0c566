// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/figure_export.h"

#include "views/figure/export_dialog.h"
#include "views/figure/figure_panel.h"

#include <QDockWidget>
#include <QFileInfo>
#include <QMainWindow>

using namespace Qt::StringLiterals;

namespace ponderscope {

FigureExport::~FigureExport() {
    delete exportDialog_;
}

ExportDialog* FigureExport::dialog() const {
    return exportDialog_;
}

void FigureExport::exportFigure(figure::FigureKind kind) {
    if (!selection_.runA().isValid()) {
        return;
    }
    figure::FigureSpec spec = text_->figureSpec(kind);
    for (const Filler& fill : fillers_) {
        fill(spec);
    }
    delete exportDialog_; // one dialog at a time, with the window's current content
    exportDialog_ = new ExportDialog({data_, selection_, theme_}, spec, window_);
    exportDialog_->setAttribute(Qt::WA_DeleteOnClose);
    connect(exportDialog_, &ExportDialog::exported, this, [this](const QStringList& files) {
        QStringList names;
        for (const QString& file : files) {
            names << QFileInfo(file).fileName();
        }
        const QString written = names.takeLast();
        messages_->show(
            "figure.written",
            u"Wrote %1 to %2. Command: ponderscope figure %3 -o %4"_s.arg(
                names.join(u" and "_s), QFileInfo(files.first()).absolutePath(), written, names.first()),
            MessageBar::Kind::success);
    });
    connect(exportDialog_, &ExportDialog::dockWanted, this, &FigureExport::dockFigure);
    exportDialog_->show();
}

void FigureExport::dockFigure(const figure::FigureSpec& spec) {
    auto* dock = new QDockWidget(QString::fromUtf8(figure::info_of(spec.kind).title), window_);
    dock->setObjectName(u"figure-%1"_s.arg(++docked_));
    dock->setAttribute(Qt::WA_DeleteOnClose);
    dock->setWidget(new FigurePanel({data_, selection_, theme_}, spec, dock));
    window_->addDockWidget(Qt::BottomDockWidgetArea, dock);
    dock->raise();
}

} // namespace ponderscope
