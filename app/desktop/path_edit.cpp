// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/path_edit.h"

#include "views/common/controls.h"
#include "views/common/format.h"

#include <QDir>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QMenu>
#include <QMimeData>
#include <QPushButton>

#include <algorithm>

using namespace Qt::StringLiterals;

namespace ponderscope {

QStringList distinct_names(const QStringList& paths) {
    QStringList names;
    for (const QString& path : paths) {
        QString name;
        for (int parts = 1;; ++parts) {
            name = path.section(u'/', -parts, -1, QString::SectionSkipEmpty);
            const auto alike = std::ranges::count_if(paths, [&](const QString& other) {
                return other.section(u'/', -parts, -1, QString::SectionSkipEmpty) == name;
            });
            if (alike == 1 || name.size() + 1 >= path.size()) {
                break;
            }
        }
        names << name;
    }
    return names;
}

PathEdit::PathEdit(Kind kind, const QString& what, const QString& filter, QWidget* parent)
    : QWidget(parent), kind_(kind), what_(what), filter_(filter) {
    setAcceptDrops(true);
    edit_->setAcceptDrops(false); // a dropped file becomes a path; the line edit would insert its URL
    edit_->setAccessibleName(what);
    auto* choose = new QPushButton(u"Choose…"_s, this);
    choose->setAutoDefault(false);
    choose->setAccessibleName(u"Choose: %1"_s.arg(what));
    offered_->setArrowType(Qt::DownArrow);
    offered_->setPopupMode(QToolButton::InstantPopup);
    offered_->setAccessibleName(u"Suggestions: %1"_s.arg(what));
    offered_->setToolTip(u"Samples, recent checkpoints and the checkpoint of the open run"_s);
    offered_->hide();
    make_row(this, {}, 6, {{edit_, 1}, offered_, choose});
    setFocusProxy(edit_);
    connect(edit_, &QLineEdit::textChanged, this, &PathEdit::changed);
    connect(choose, &QPushButton::clicked, this, &PathEdit::browse);
}

QString PathEdit::path() const {
    QString path = edit_->text();
    if (path.startsWith(QLatin1String("~/"))) {
        path = QDir::homePath() + path.mid(1);
    }
    return path;
}

void PathEdit::setPath(const QString& path) {
    edit_->setText(path);
}

void PathEdit::offer(const QStringList& paths) {
    auto* menu = new QMenu(offered_);
    menu->setToolTipsVisible(true);
    for (const QString& path : paths) {
        // The folder's own name comes first, because the folders above are often the same.
        const QFileInfo info(path);
        constexpr int widest = 420; // pixels for a folder's path
        const QString folder = menu->fontMetrics().elidedText(info.path(), Qt::ElideMiddle, widest);
        QAction* action = menu->addAction(u"%1\t%2"_s.arg(info.fileName(), folder).replace(u'&', u"&&"_s),
                                          this, [this, path] { setPath(path); });
        action->setData(path);
        action->setToolTip(plain_tip(path));
    }
    delete offered_->menu();
    offered_->setMenu(menu);
    offered_->setVisible(!paths.isEmpty());
}

void PathEdit::browse() {
    QString chosen;
    switch (kind_) {
    case Kind::folder:
        chosen = QFileDialog::getExistingDirectory(this, what_, path());
        break;
    case Kind::openFile:
        chosen = QFileDialog::getOpenFileName(this, what_, path(), filter_);
        break;
    case Kind::saveFile:
        // An existing trace gets an additional run, so nothing is overwritten.
        chosen = QFileDialog::getSaveFileName(this, what_, path(), filter_, nullptr,
                                              QFileDialog::DontConfirmOverwrite);
        break;
    }
    if (!chosen.isEmpty()) {
        setPath(chosen);
    }
}

void PathEdit::dragEnterEvent(QDragEnterEvent* event) {
    if (event->mimeData()->hasUrls() && event->mimeData()->urls().constFirst().isLocalFile()) {
        event->acceptProposedAction();
    }
}

void PathEdit::dropEvent(QDropEvent* event) {
    setPath(event->mimeData()->urls().constFirst().toLocalFile());
    event->acceptProposedAction();
}

} // namespace ponderscope
