// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/span_bar.h"

#include "views/common/controls.h"
#include "views/common/format.h"
#include "views/common/paths.h"
#include "views/text/text_view.h"

#include <QApplication>
#include <QClipboard>
#include <QDialog>
#include <QDialogButtonBox>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPainter>
#include <QToolButton>

#include <numeric>

using namespace Qt::StringLiterals;

namespace ponderscope {

SpanBar::SpanBar(const ViewContext& context, TextView& view, QWidget* parent)
    : QWidget(parent),
      context_(context),
      view_(view),
      words_(new QLabel(this)),
      copy_(flat_button(u"Copy"_s, {}, this)),
      label_(flat_button(u"Label…"_s, {}, this)),
      writing_(this) {
    words_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    words_->setAccessibleName(u"Means of the span"_s);
    words_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    words_->setWordWrap(true);
    auto* figure = flat_button(u"Figure…"_s, u"Makes a figure of the span"_s, this);
    auto* send =
        flat_button(u"Send to Compare"_s, u"Restrict Compare to the span, for means with intervals"_s, this);
    auto* shut = flat_button(u"×"_s, u"Clears the selection (Esc)"_s, this);
    make_row(this, {24, 6, 14, 6}, 6, {{words_, 1}, copy_, label_, figure, send, shut});
    connect(copy_, &QToolButton::clicked, this, &SpanBar::copy);
    connect(label_, &QToolButton::clicked, this, [this] { askForLabel({}); });
    connect(figure, &QToolButton::clicked, this, &SpanBar::figureWanted);
    connect(send, &QToolButton::clicked, this, [this] {
        const TokenSpan span = view_.span();
        std::vector<qint64> tokens(static_cast<std::size_t>(span.size()));
        std::iota(tokens.begin(), tokens.end(), span.first);
        Q_EMIT sent(
            subset_of(context_.selection, u"tokens %1 to %2"_s.arg(span.first).arg(span.last - 1), tokens));
    });
    connect(shut, &QToolButton::clicked, this, [this] { view_.setSpan({}); });
    connect(&view_, &TextView::spanChanged, this, &SpanBar::showSpan);
    connect(&view_, &TextView::valuesChanged, this, &SpanBar::showSpan); // for a change of attribution
    connect(&view_, &TextView::otherChanged, this, &SpanBar::showSpan);
    connect(&context_.theme, &Theme::changed, this, qOverload<>(&QWidget::update));
    hide();
}

void SpanBar::addActions(QMenu& menu) {
    menu.addAction(u"Copy Span"_s, this, &SpanBar::copy)->setEnabled(copy_->isEnabled());
    menu.addAction(u"Label Span…"_s, this, [this] { askForLabel({}); })->setEnabled(label_->isEnabled());
    menu.addAction(u"Figure of Span…"_s, this, &SpanBar::figureWanted);
    menu.addAction(u"Deselect Span"_s, this, [this] { view_.setSpan({}); });
}

void SpanBar::showSpan() {
    const TokenSpan span = view_.span();
    const auto a = view_.sequence();
    if (span.isEmpty() || !a) {
        hide();
        return;
    }
    const RunInfo* run = context_.data.run(a->run);
    const RunKey other = context_.selection.runB();
    const auto b = other.isValid() ? context_.data.sequence(other, a->sequence) : nullptr;
    words_->setText(describe_span(
        span_means(*a, b.get(), run == nullptr ? 0 : run->max_steps, span, context_.selection.attribution()),
        span));
    copy_->setEnabled(span.size() <= most_copied);
    copy_->setToolTip(copy_->isEnabled() ? u"Copies the text of the span to the clipboard"_s
                                         : u"The span is too long: at most %1 tokens can be copied"_s.arg(
                                               format_count(most_copied)));
    const QString trace = context_.selection.runA().trace;
    const bool live = context_.data.isLive(trace);
    label_->setEnabled(!live && !is_elsewhere(trace));
    label_->setToolTip(
        live ? u"Wait until the run is recorded, then label the span"_s
        : is_elsewhere(trace)
            ? u"Traces on %1 are read-only. Copy the run to this machine (menu of the run in the "
              "Library), or add the label on %1. The window also shows labels that were added on %1"_s.arg(
                  machine_of(trace).mid(6))
            : u"Labels the span. You can colour, find and group tokens by the label. An annotation file "
              "beside the trace stores the label"_s);
    show();
}

QString SpanBar::said() const {
    return words_->text();
}

void SpanBar::copy() const {
    const auto shown = view_.sequence();
    const TokenSpan span = view_.span();
    if (shown && !span.isEmpty() && span.size() <= most_copied) {
        QApplication::clipboard()->setText(span_text(*shown, span));
    }
}

void SpanBar::label(const RunKey& run, qint64 sequence, TokenSpan span, const QString& annotation,
                    const QString& name) {
    writing_.start(
        [run, sequence, span, annotation, name](const std::stop_token&) {
            label_span(run, sequence, span, annotation, name);
            return true;
        },
        [this](bool) { context_.data.refresh(); },
        [this](const QString& sentence) { Q_EMIT failed(sentence); });
}

TokenSpan SpanBar::spanOrToken() const {
    const qint64 token = context_.selection.token();
    return !view_.span().isEmpty() || token < 0 ? view_.span() : TokenSpan{token, token + 1};
}

bool SpanBar::canLabel() {
    const bool live = context_.data.isLive(context_.selection.runA().trace);
    if (live) {
        Q_EMIT failed(u"The generation is not recorded yet. Label the tokens when the generation has "
                      "ended."_s);
    }
    return !live;
}

void SpanBar::toggleBookmark() {
    const QString bookmark = u"bookmark"_s;
    const TokenSpan span = spanOrToken();
    const auto about = view_.sequence();
    if (!about || span.isEmpty() || !canLabel()) {
        return;
    }
    const QString now = view_.noteAt(span.first);
    if (now.isEmpty() || now == bookmark) {
        label(about->run, about->sequence, span, note_annotation, now.isEmpty() ? bookmark : QString());
    }
}

void SpanBar::askForLabel(const QString& wanted) {
    // Store the span's sequence, because the text may change while the dialog is open.
    const auto about = view_.sequence();
    const TokenSpan span = spanOrToken();
    if (!about || span.isEmpty() || !canLabel()) {
        return;
    }
    QDialog dialog(this);
    dialog.setObjectName(u"label"_s);
    dialog.setWindowTitle(span.size() == 1 ? u"Label Token"_s : u"Label Span"_s);
    auto* annotation = new QComboBox(&dialog);
    annotation->setEditable(true);
    QStringList classes;
    for (const TokenAnnotation& one : about->annotations) {
        if (one.category) {
            annotation->addItem(one.name);
            classes << one.classes;
        }
    }
    if (!wanted.isEmpty() || annotation->count() == 0) {
        annotation->setEditText(wanted.isEmpty() ? u"label"_s : wanted);
    }
    auto* name = new QComboBox(&dialog);
    name->setEditable(true);
    classes.removeDuplicates();
    name->addItems(classes);
    const TokenAnnotation* present = about->annotation(wanted);
    name->setEditText(present == nullptr ? QString()
                                         : format_annotation(*present, static_cast<std::size_t>(span.first)));
    name->lineEdit()->setPlaceholderText(u"Enter a few words, or leave the field empty to remove the "
                                         "label"_s);
    name->lineEdit()->selectAll();
    annotation->setToolTip(u"Annotation that stores the labels. Its name: letters, digits, underscores"_s);
    name->setMinimumWidth(300);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel, &dialog);
    auto* form = new QFormLayout(&dialog);
    form->addRow(u"Label"_s, name);
    form->addRow(u"In the annotation"_s, annotation);
    form->addRow(buttons);
    connect(buttons, &QDialogButtonBox::accepted, &dialog, &QDialog::accept);
    connect(buttons, &QDialogButtonBox::rejected, &dialog, &QDialog::reject);
    name->setFocus();
    if (dialog.exec() == QDialog::Accepted) {
        label(about->run, about->sequence, span, annotation->currentText().trimmed(),
              name->currentText().trimmed());
    }
}

void SpanBar::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), context_.theme.colours().panel);
    painter.fillRect(0, 0, width(), 1, context_.theme.colours().line);
}

} // namespace ponderscope
