// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/heatmap/map_header.h"

#include "views/common/flow_layout.h"
#include "views/common/readout.h"
#include "views/common/theme.h"
#include "views/heatmap/scale_bar.h"

#include <QComboBox>

namespace ponderscope {

MapHeader::MapHeader(Theme& theme, StepMapCanvas& canvas, QWidget* parent)
    : QWidget(parent),
      theme_(theme),
      canvas_(canvas),
      line_(new FlowLayout(this)),
      chooser_(new QComboBox(this)),
      scale_(new ScaleBar(theme, this)),
      options_(new MapOptions(theme, canvas, this)),
      readout_(new Readout(theme, this)) {
    chooser_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    line_->setContentsMargins(0, 0, 0, 0);
    line_->setSpacing(12);
    line_->addWidget(chooser_);
    line_->addWidget(scale_);
    line_->addWidget(options_);
    line_->addWidget(readout_);
    const auto dress = [this] { chooser_->setFont(theme_.strong()); };
    dress();
    connect(&theme_, &Theme::changed, this, dress);
    connect(options_, &MapOptions::changed, this, [this] { showScale(unit_, halted_); });
}

void MapHeader::insert(QWidget* widget) {
    line_->insertWidget(2, widget);
}

void MapHeader::showScale(const QString& unit, bool halted) {
    unit_ = unit;
    halted_ = halted;
    if (canvas_.map() == nullptr) {
        scale_->clear();
        return;
    }
    options_->apply();
    scale_->setLook(canvas_.look(), unit, halted);
}

void MapHeader::setReadout(const QString& text) {
    readout_->say(text);
}

QString MapHeader::readout() const {
    return readout_->said();
}

void MapHeader::clear() {
    scale_->clear();
    setReadout({});
}

} // namespace ponderscope
