// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/panel_frame.h"

#include "app/desktop/panel_help.h"
#include "views/common/controls.h"
#include "views/common/theme.h"
#include "views/common/view_command.h"

#include <QDockWidget>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QResizeEvent>
#include <QScrollArea>
#include <QToolButton>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

constexpr int lowest_with_caveat = 230; ///< pixels

} // namespace

PanelFrame::PanelFrame(QWidget* panel, const QString& caveat, Theme& theme)
    : panel_(panel), caveat_(soft_label(this, caveat)) {
    // The minimum size of a panel must not depend on its current contents: otherwise panels would push each
    // other about with every change of run.
    setMinimumSize(200, 110);
    QWidget* shown = panel;
    if (qobject_cast<QAbstractScrollArea*>(panel) == nullptr) {
        auto* scroll = new QScrollArea(this);
        scroll->setFrameShape(QFrame::NoFrame);
        scroll->setWidgetResizable(true);
        scroll->setWidget(panel);
        scroll->setFocusPolicy(Qt::NoFocus);
        // The theme's own ground shows through.
        scroll->viewport()->setAutoFillBackground(false);
        panel->setAutoFillBackground(false);
        shown = scroll;
    }
    caveat_->setContentsMargins(14, 4, 14, 5);
    caveat_->hide();
    make_column(this, {}, 0, {{shown, 1}, caveat_});
    theme.dress(this, [this, &theme] { caveat_->setFont(theme.small()); });
}

void PanelFrame::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    caveat_->setVisible(!caveat_->text().isEmpty() && event->size().height() >= lowest_with_caveat);
}

QWidget* panel_of(const QDockWidget& dock) {
    const auto* frame = qobject_cast<PanelFrame*>(dock.widget());
    return frame == nullptr ? dock.widget() : frame->panel();
}

DockTitle::DockTitle(QDockWidget* dock, const PanelHelp* help, const QString& heading, Theme& theme)
    : QWidget(dock), dock_(dock), help_(help), heading_(heading), theme_(theme) {
    setAccessibleName(u"Title of %1"_s.arg(dock->windowTitle()));
    setFocusPolicy(Qt::NoFocus);
    setToolTip(u"Drag to move the panel; double-click to float it"_s);
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(0, 0, 6, 0);
    row->setSpacing(0);
    row->addStretch(1);
    const auto button = [&](const QString& sign, const QString& tip) {
        auto* made = new QToolButton(this);
        made->setText(sign);
        made->setToolTip(tip);
        made->setAccessibleName(u"%1: %2"_s.arg(dock->windowTitle(), tip));
        made->setAutoRaise(true);
        made->setFocusPolicy(Qt::TabFocus);
        made->setFixedSize(22, 20);
        ++buttons_;
        made->setFont(theme.small());
        theme.dress(made, [made, &theme] {
            QPalette quiet = made->palette();
            quiet.setColor(QPalette::ButtonText, theme.colours().soft);
            made->setPalette(quiet);
        });
        row->addWidget(made);
        return made;
    };
    ask_ = button(u"?"_s, help == nullptr ? QString() : u"Help on the panel (F1): %1"_s.arg(help->brief));
    ask_->setVisible(help != nullptr);
    connect(ask_, &QToolButton::clicked, this, &DockTitle::showHelp);
    if (dynamic_cast<ShowsCommand*>(panel_of(*dock)) != nullptr) {
        QToolButton* copy = button(u"$"_s, u"Copy as Command"_s);
        connect(copy, &QToolButton::clicked, this, &DockTitle::copyRequested);
    }
    QToolButton* large = button(u"⤢"_s, u"Maximize or Restore Panel"_s);
    connect(large, &QToolButton::clicked, this, &DockTitle::maximiseRequested);
    QToolButton* out = button(u"❐"_s, u"Float or Dock Panel"_s);
    connect(out, &QToolButton::clicked, dock, [dock] { dock->setFloating(!dock->isFloating()); });
    QToolButton* close = button(u"×"_s, u"Close Panel (View → Panels reopens the panel)"_s);
    connect(close, &QToolButton::clicked, dock, &QDockWidget::close);
    connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
    connect(dock, &QDockWidget::topLevelChanged, this, qOverload<>(&QWidget::update));
}

void DockTitle::showHelp() {
    if (help_ != nullptr) {
        show_panel_help(*help_, ask_->isVisible() ? static_cast<QWidget*>(ask_) : this, theme_);
    }
}

void DockTitle::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), theme_.colours().panel);
    painter.setFont(theme_.strong());
    painter.setPen(theme_.colours().text);
    const QRect room = rect().adjusted(14, 0, -22 * buttons_ - 10, 0);
    painter.drawText(room, Qt::AlignLeft | Qt::AlignVCenter,
                     QFontMetrics(theme_.strong()).elidedText(heading_, Qt::ElideRight, room.width()));
}

} // namespace ponderscope
