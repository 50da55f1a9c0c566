// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/figure_gallery.h"

#include "core/base/error.h"
#include "views/common/format.h"
#include "views/figure/backends.h"

#include <QPainter>
#include <QPixmap>

#include <algorithm>

namespace ponderscope {

using namespace figure;

namespace {

constexpr QSize icon_size{66, 44};
constexpr int reason_role = Qt::UserRole + 1;

/// The figure on a small sheet: its upper part where it is higher than the sheet.
QPixmap sheet_of(const Figure& made, const Fonts& fonts, double ratio) {
    QPixmap sheet(icon_size * ratio);
    sheet.setDevicePixelRatio(ratio);
    sheet.fill(Qt::white);
    QPainter painter(&sheet);
    painter.setRenderHint(QPainter::Antialiasing);
    const double scale = (icon_size.width() - 6) / made.page.size().width();
    painter.save();
    painter.setClipRect(QRectF(QPointF(3, 3), QSizeF(icon_size) - QSizeF(6, 6)));
    painter.translate(3, 3);
    painter.scale(scale, scale);
    paint(made.page, fonts, painter);
    painter.restore();
    painter.setPen(QColor(0xc8ccd2));
    painter.drawRect(QRectF(QPointF(0.5, 0.5), QSizeF(icon_size) - QSizeF(1, 1)));
    return sheet;
}

} // namespace

FigureGallery::FigureGallery(FigureSpec example, QWidget* parent)
    : QListWidget(parent), example_(std::move(example)), maker_(this) {
    setAccessibleName(tr("Kinds of figures"));
    setIconSize(icon_size);
    setSpacing(1);
    setUniformItemSizes(true);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    QPixmap empty(icon_size * devicePixelRatioF());
    empty.setDevicePixelRatio(devicePixelRatioF());
    empty.fill(Qt::transparent);
    for (const KindInfo& info : figure_kinds()) {
        auto* item = new QListWidgetItem(QIcon(empty), tr(info.title), this);
        item->setData(Qt::UserRole, static_cast<int>(info.kind));
        item->setToolTip(tr(info.shows));
    }
    setWordWrap(true);
    setFixedWidth(250);
    connect(&maker_, &FigureMaker::ready, this, [this] { finish({}); });
    connect(&maker_, &FigureMaker::failed, this, &FigureGallery::finish);
}

FigureKind FigureGallery::kind() const {
    const QListWidgetItem* item = currentItem();
    return item == nullptr ? example_.kind : static_cast<FigureKind>(item->data(Qt::UserRole).toInt());
}

void FigureGallery::setKind(FigureKind kind) {
    for (int row = 0; row < count(); ++row) {
        if (item(row)->data(Qt::UserRole).toInt() == static_cast<int>(kind)) {
            setCurrentRow(row);
        }
    }
}

QString FigureGallery::reason(FigureKind kind) const {
    for (int row = 0; row < count(); ++row) {
        if (item(row)->data(Qt::UserRole).toInt() == static_cast<int>(kind)) {
            return item(row)->data(reason_role).toString();
        }
    }
    return {};
}

void FigureGallery::makeExamples() {
    if (next_ == 0) {
        makeNext();
    }
}

void FigureGallery::makeNext() {
    if (++next_ > count()) {
        return;
    }
    const auto kind = static_cast<FigureKind>(item(next_ - 1)->data(Qt::UserRole).toInt());
    FigureSpec spec = example_;
    spec.kind = kind;
    spec.width_mm = single_column_mm;
    spec.theme = "light";
    spec.replicates = 100;
    spec.series.clear();
    if (kind == FigureKind::panels) {
        FigureSpec one = spec;
        one.kind = FigureKind::steps_histogram;
        one.runs.resize(1);
        spec.panels = {one, one};
        spec.runs = one.runs;
        spec.width_mm = double_column_mm;
    } else if (is_chart(kind)) {
        spec.sequence.reset();
        spec.tokens.reset();
    }
    if (!info_of(kind).uses_b || kind == FigureKind::depth_ablation || kind == FigureKind::token_text) {
        spec.runs.resize(1);
        spec.quantity = Quantity::nll;
    }
    if (kind == FigureKind::signal_by_step) {
        spec.signal = "entropy";
    }
    if (kind == FigureKind::winners && spec.runs.size() < 2) {
        finish(tr("needs a second run over the same text"));
        return;
    }
    maker_.make(spec);
}

void FigureGallery::finish(const QString& reason) {
    QListWidgetItem* made = item(next_ - 1);
    if (reason.isEmpty() && maker_.figure() != nullptr) {
        made->setIcon(QIcon(sheet_of(*maker_.figure(), *maker_.fonts(), devicePixelRatioF())));
    } else {
        made->setData(reason_role, reason);
        made->setForeground(palette().color(QPalette::Disabled, QPalette::Text));
        made->setToolTip(plain_tip(tr("Not of this run: %1").arg(reason)));
    }
    // The event loop first: whoever works in the dialog comes before the next example.
    QMetaObject::invokeMethod(this, &FigureGallery::makeNext, Qt::QueuedConnection);
}

} // namespace ponderscope
