// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/panel_frame.h"

#include "views/common/theme.h"

#include <QDockWidget>
#include <QLabel>
#include <QResizeEvent>
#include <QScrollArea>
#include <QVBoxLayout>

namespace ponderscope {
namespace {

constexpr int lowest_with_caveat = 230; ///< pixels

} // namespace

PanelFrame::PanelFrame(QWidget* panel, const QString& caveat, Theme& theme)
    : panel_(panel), caveat_(new QLabel(caveat, this)) {
    // How little room a panel can do with must not depend on what it shows just now: the panels would push
    // each other about with every change of run.
    setMinimumSize(200, 110);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    if (qobject_cast<QAbstractScrollArea*>(panel) != nullptr) {
        column->addWidget(panel, 1);
    } else {
        auto* scroll = new QScrollArea(this);
        scroll->setFrameShape(QFrame::NoFrame);
        scroll->setWidgetResizable(true);
        scroll->setWidget(panel);
        scroll->setFocusPolicy(Qt::NoFocus);
        // The theme's own ground shows through.
        scroll->viewport()->setAutoFillBackground(false);
        panel->setAutoFillBackground(false);
        column->addWidget(scroll, 1);
    }
    caveat_->setWordWrap(true);
    caveat_->setTextFormat(Qt::PlainText);
    caveat_->setForegroundRole(QPalette::PlaceholderText);
    caveat_->setContentsMargins(14, 4, 14, 5);
    caveat_->hide();
    column->addWidget(caveat_);
    const auto dress = [this, &theme] { caveat_->setFont(theme.small()); };
    dress();
    connect(&theme, &Theme::changed, this, dress);
}

void PanelFrame::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    caveat_->setVisible(!caveat_->text().isEmpty() && event->size().height() >= lowest_with_caveat);
}

QWidget* panel_of(const QDockWidget& dock) {
    const auto* frame = qobject_cast<PanelFrame*>(dock.widget());
    return frame == nullptr ? dock.widget() : frame->panel();
}

} // namespace ponderscope
