// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/top_bar.h"

#include "views/common/controls.h"
#include "views/common/tables.h"

#include <QAbstractItemView>
#include <QComboBox>
#include <QFileInfo>
#include <QLineEdit>
#include <QMenuBar>
#include <QPainter>
#include <QStylePainter>

#include <algorithm>
#include <vector>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

constexpr int name_role = Qt::UserRole + 1; ///< text of an entry in the closed box

/// A combo box of runs with their colours. The closed box shows the letter of its role (A, B).
class RunBox : public QComboBox {
public:
    RunBox(QChar role, const QString& about, const Theme& theme, QWidget* parent)
        : QComboBox(parent), role_(role), theme_(theme) {
        setItemDelegate(dot_delegate(this, 6));
        setIconSize({18, 18});
        setMinimumContentsLength(16);
        setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
        setMinimumWidth(150);
        setMaximumWidth(250);
        setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
        setAccessibleName(u"Run %1"_s.arg(role));
        setToolTip(u"Run %1: %2"_s.arg(role).arg(about));
    }

protected:
    void paintEvent(QPaintEvent*) override {
        QStylePainter painter(this);
        QStyleOptionComboBox option;
        initStyleOption(&option);
        painter.drawComplexControl(QStyle::CC_ComboBox, option);
        const QRect field =
            style()->subControlRect(QStyle::CC_ComboBox, &option, QStyle::SC_ComboBoxEditField, this);
        const QString name = currentData(name_role).toString();
        const QRect text = field.adjusted(badge_room, 0, -2, 0);
        painter.drawItemText(
            text, Qt::AlignLeft | Qt::AlignVCenter, palette(), isEnabled(),
            fontMetrics().elidedText(name.isEmpty() ? currentText() : name, Qt::ElideMiddle, text.width()),
            QPalette::ButtonText);
        const Palette& colours = theme_.colours();
        const bool a = role_ == u'A';
        const QRectF badge(field.x() + 2, field.center().y() - 7, 16, 16);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(Qt::NoPen);
        painter.setBrush(a ? colours.a : colours.b);
        painter.drawRoundedRect(badge, 3, 3);
        painter.setPen(a ? colours.onA : colours.onB);
        painter.setFont(theme_.caps());
        painter.drawText(badge, Qt::AlignCenter, role_);
    }

private:
    static constexpr int badge_room = 24;
    QChar role_;
    const Theme& theme_;
};

/// The field that opens the find bar, by a click or Enter.
class FindField : public QLineEdit {
public:
    explicit FindField(QWidget* parent) : QLineEdit(parent) {
        setReadOnly(true);
        setPlaceholderText(u"Find (Ctrl+F)"_s);
        setAccessibleName(u"Find a token"_s);
        setToolTip(u"Find words, /patterns/ or a condition such as steps = 3 and nll > 4 (Ctrl+F)"_s);
        setMinimumWidth(120);
        setMaximumWidth(220);
        setFocusPolicy(Qt::TabFocus);
    }

protected:
    void mousePressEvent(QMouseEvent*) override { Q_EMIT returnPressed(); }
};

} // namespace

TopBar::TopBar(const ViewContext& context, QWidget* parent)
    : QWidget(parent),
      context_(context),
      menus_(new QMenuBar(this)),
      a_(new RunBox(u'A', u"the shown run"_s, context.theme, this)),
      b_(new RunBox(u'B', u"the run to compare with A"_s, context.theme, this)),
      find_(new FindField(this)) {
    menus_->setNativeMenuBar(false);
    menus_->setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Preferred);
    QBoxLayout* row = make_row(this, {6, 5, 14, 6}, 14, {menus_, {a_, 6}, {b_, 6}, {find_, 3}});
    row->insertStretch(3, 2);
    row->insertStretch(1, 1);

    connect(find_, &QLineEdit::returnPressed, this, &TopBar::findRequested);
    connect(a_, &QComboBox::activated, this, [this] {
        const auto key = a_->currentData().value<RunKey>();
        if (key == context_.selection.runB()) {
            context_.selection.setRunB(context_.selection.runA());
        }
        context_.selection.setRunA(key);
    });
    connect(b_, &QComboBox::activated, this,
            [this] { context_.selection.setRunB(b_->currentData().value<RunKey>()); });
    connect(&context_.selection, &Selection::runsChanged, this, &TopBar::fill);
    connect(&context_.data, &TraceData::traceOpened, this, &TopBar::fill);
    connect(&context_.data, &TraceData::traceChanged, this, &TopBar::fill);
    connect(&context_.data, &TraceData::traceClosed, this, &TopBar::fill);
    connect(&context_.theme, &Theme::changed, this, [this] {
        fill();
        update();
    });
    fill();
}

void TopBar::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    // In a narrow window, the boxes shrink first, then the menus.
    const int others = a_->minimumWidth() + b_->minimumWidth() + find_->minimumWidth() + 90;
    const int menus = menus_->sizeHint().width();
    menus_->setMinimumWidth(width() >= menus + others ? menus : 0);
}

void TopBar::fill() {
    const RunInfo* a = context_.data.run(context_.selection.runA());
    std::vector<ChooserEntry> ofA;
    std::vector<ChooserEntry> ofB{{u"no B"_s, QVariant::fromValue(RunKey{})}};
    for (const QString& live : context_.data.liveNames()) {
        for (const RunInfo& run : context_.data.runs(live)) {
            ofA.push_back({u"%1 · thinking"_s.arg(QString::fromStdString(run.name)),
                           QVariant::fromValue(RunKey{live, run.id})});
        }
    }
    for (const QString& trace : context_.data.traces()) {
        const QString stem =
            context_.data.isScratch(trace) ? u"scratch"_s : QFileInfo(trace).completeBaseName();
        for (const RunInfo& run : context_.data.runs(trace)) {
            const RunKey key{trace, run.id};
            // The trace's name tells runs apart, unless only one trace is open that is not temporary.
            QString name = QString::fromStdString(run.name);
            if (context_.data.traces().size() > 1 || context_.data.isScratch(trace)) {
                name += u" · "_s + stem;
            }
            ofA.push_back({name,
                           QVariant::fromValue(key),
                           name,
                           {{Qt::DecorationRole, context_.theme.runColour(key, context_.selection)},
                            {name_role, name}}});
            ofB.push_back(ofA.back());
            if (a != nullptr && run.text_digest != a->text_digest) {
                ofB.back().text = u"%1 (another text)"_s.arg(name);
            }
        }
    }
    if (ofA.empty()) {
        ofA.push_back({u"no run"_s, QVariant::fromValue(RunKey{})});
    }
    fill_chooser(*a_, ofA, a == nullptr ? ofA.front().data : QVariant::fromValue(context_.selection.runA()));
    const RunKey other = context_.selection.runB();
    fill_chooser(*b_, ofB, QVariant::fromValue(context_.data.run(other) == nullptr ? RunKey{} : other));
    for (QComboBox* box : {a_, b_}) { // the open list shows whole names
        box->view()->setMinimumWidth(
            std::min(box->view()->sizeHintForColumn(0) + 36, std::max(width() * 2 / 3, 250)));
    }
}

void TopBar::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), context_.theme.colours().panel);
    painter.fillRect(0, height() - 1, width(), 1, context_.theme.colours().line);
}

} // namespace ponderscope
