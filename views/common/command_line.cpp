// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/command_line.h"

#include "views/common/theme.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QPushButton>

namespace ponderscope {

CommandLine::CommandLine(const Theme& theme, QWidget* parent) : QWidget(parent), edit_(new QLineEdit(this)) {
    edit_->setReadOnly(true);
    edit_->setFont(theme.mono());
    edit_->setAccessibleName(tr("Command line"));
    auto* button = new QPushButton(tr("Copy"), this);
    button->setAutoDefault(false);
    button->setAccessibleName(tr("Copy as command"));
    button->setToolTip(tr("Copy as command: for a terminal, without the window"));
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(6);
    row->addWidget(edit_, 1);
    row->addWidget(button);
    setFocusProxy(edit_);
    connect(button, &QPushButton::clicked, this, &CommandLine::copy);
}

void CommandLine::setCommand(const QString& shown, const QString& copied) {
    edit_->setText(shown);
    edit_->setCursorPosition(0);
    copied_ = copied.isEmpty() ? shown : copied;
}

QString CommandLine::shown() const {
    return edit_->text();
}

void CommandLine::copy() const {
    QGuiApplication::clipboard()->setText(copied_);
}

} // namespace ponderscope
