// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/panel_help.h"

#include "views/common/controls.h"
#include "views/common/theme.h"

#include <QFile>
#include <QFrame>
#include <QLabel>
#include <QScreen>
#include <QScrollArea>
#include <QScrollBar>

#include <algorithm>

using namespace Qt::StringLiterals;

/// Q_INIT_RESOURCE must be outside of a namespace. Resources in a static library need it.
static void load_help() {
    Q_INIT_RESOURCE(icons);
}

namespace ponderscope {

namespace {

/// The help sheet: a popup, which a click elsewhere or Escape closes.
class Sheet : public QFrame {
public:
    Sheet(const QString& text, const Theme& theme, QWidget* parent) : QFrame(parent, Qt::Popup) {
        setAttribute(Qt::WA_DeleteOnClose);
        setObjectName(u"panelHelp"_s);
        setAccessibleName(u"Help"_s);
        setFrameShape(QFrame::Box);
        auto* label = new QLabel(text, this);
        label->setWordWrap(true);
        label->setTextFormat(Qt::MarkdownText);
        label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
        label->setAccessibleName(u"Help"_s);
        label->setFont(theme.body());
        label->setFixedWidth(440);
        auto* scroll = new QScrollArea(this);
        scroll->setFrameShape(QFrame::NoFrame);
        scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
        scroll->setWidget(label);
        scroll->setFocusPolicy(Qt::StrongFocus);
        scroll->setAccessibleName(u"Help"_s);
        label->adjustSize();
        make_column(this, {20, 16, 8, 16}, -1, {scroll});
        const int bar = scroll->verticalScrollBar()->sizeHint().width() + 8; // 8: a margin that styles add
        const int most = parent->screen()->availableGeometry().height() - 60;
        setFixedSize(label->width() + bar + 28, std::min(label->height() + 32, most));
    }
};

} // namespace

const std::vector<PanelHelp>& all_panel_help() {
    static const std::vector<PanelHelp> all = [] {
        load_help();
        std::vector<PanelHelp> read;
        QFile page(u":/panels.md"_s);
        const bool there = page.open(QIODevice::ReadOnly);
        // A section: title, empty line, "> brief", empty line, text.
        for (const QString& section :
             there ? QString::fromUtf8(page.readAll()).split(u"\n## "_s).mid(1) : QStringList()) {
            read.push_back({section.section(u'\n', 0, 0), section.section(u'\n', 2, 2).mid(2),
                            u"### %1\n\n%2"_s.arg(section.section(u'\n', 0, 0), section.section(u'\n', 4))});
        }
        return read;
    }();
    return all;
}

const PanelHelp* panel_help(const QString& title) {
    const std::vector<PanelHelp>& all = all_panel_help();
    const auto found = std::ranges::find_if(all, [&](const PanelHelp& one) { return one.title == title; });
    return found == all.end() ? nullptr : &*found;
}

QWidget* show_panel_help(const PanelHelp& help, QWidget* anchor, const Theme& theme) {
    auto* sheet = new Sheet(help.text, theme, anchor->window());
    QPoint place = anchor->mapToGlobal(QPoint(anchor->width() - sheet->width(), anchor->height() + 2));
    if (const QScreen* screen = anchor->screen()) {
        const QRect room = screen->availableGeometry();
        place.setX(std::clamp(place.x(), room.left(), std::max(room.left(), room.right() - sheet->width())));
        place.setY(std::clamp(place.y(), room.top(), std::max(room.top(), room.bottom() - sheet->height())));
    }
    sheet->move(place);
    sheet->show();
    return sheet;
}

} // namespace ponderscope
