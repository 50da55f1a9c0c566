// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/connect_dialog.h"

#include "app/desktop/settings.h"
#include "core/base/error.h"
#include "core/remote/address.h"
#include "core/trace/shard.h"
#include "views/common/format.h"
#include "views/common/paths.h"
#include "views/common/theme.h"

#include <QComboBox>
#include <QDateTime>
#include <QDialogButtonBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QLocale>
#include <QPushButton>
#include <QTreeWidget>
#include <QVBoxLayout>

#include <algorithm>
#include <map>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

constexpr int most_hosts = 10;
constexpr int kind_role = Qt::UserRole;

QString words_of(remote::Kind kind) {
    switch (kind) {
    case remote::Kind::trace:
        return u"trace"_s;
    case remote::Kind::checkpoint:
        return u"checkpoint"_s;
    case remote::Kind::training:
        return u"training"_s;
    default:
        return u"folder"_s;
    }
}

} // namespace

ConnectDialog::ConnectDialog(Settings& settings, const Theme& theme, QWidget* parent)
    : QDialog(parent), settings_(settings) {
    setWindowTitle(u"Connect to Another Machine"_s);
    host_ = new QComboBox(this);
    host_->setEditable(true);
    host_->setInsertPolicy(QComboBox::NoInsert);
    host_->addItems(settings.dialog(u"hosts"_s, QStringList()).toStringList());
    host_->lineEdit()->setPlaceholderText(u"user@server, or a name from ~/.ssh/config"_s);
    host_->setAccessibleName(u"Host"_s);
    connect_ = new QPushButton(u"Connect"_s, this);
    connect_->setAutoDefault(false);
    auto* row = new QHBoxLayout;
    row->addWidget(host_, 1);
    row->addWidget(connect_);
    folder_ = new QLineEdit(this);
    folder_->setEnabled(false);
    folder_->setAccessibleName(u"Folder there"_s);
    list_ = new QTreeWidget(this);
    list_->setObjectName(u"far"_s);
    list_->setHeaderLabels({u"Name"_s, u"What"_s, u"Size"_s, u"Changed"_s});
    list_->setRootIsDecorated(false);
    list_->setUniformRowHeights(true);
    list_->setAllColumnsShowFocus(true);
    list_->setAccessibleName(u"Traces and checkpoints on the server"_s);
    list_->header()->setStretchLastSection(false);
    list_->header()->setSectionResizeMode(QHeaderView::ResizeToContents);
    list_->header()->setSectionResizeMode(0, QHeaderView::Stretch);
    list_->header()->setAccessibleName(u"Columns"_s);
    said_ = new QLabel(this);
    said_->setObjectName(u"said"_s);
    said_->setTextFormat(Qt::PlainText);
    said_->setWordWrap(true);
    said_->setFont(theme.body());
    said_->setText(u"The connection uses your ssh with its keys and configuration. ponderscope must be "
                   "installed on the server. Nothing is copied until you fetch it."_s);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Open | QDialogButtonBox::Close, this);
    open_ = buttons->button(QDialogButtonBox::Open);
    open_->setAutoDefault(false);
    open_->setEnabled(false);
    auto* form = new QFormLayout;
    form->addRow(u"Host"_s, row);
    form->addRow(u"Folder"_s, folder_);
    auto* column = new QVBoxLayout(this);
    column->addLayout(form);
    column->addWidget(list_, 1);
    column->addWidget(said_);
    column->addWidget(buttons);
    resize(640, 520);

    const auto go = [this] { look(urlOf(host_->currentText().trimmed())); };
    connect(connect_, &QPushButton::clicked, this, go);
    connect(host_->lineEdit(), &QLineEdit::returnPressed, this, go);
    connect(folder_, &QLineEdit::returnPressed, this, [this] {
        look(machine_of(url_) + (folder_->text().startsWith(u'/') ? QString() : u"/"_s) + folder_->text());
    });
    connect(list_, &QTreeWidget::itemActivated, this, &ConnectDialog::follow);
    connect(list_, &QTreeWidget::itemSelectionChanged, this,
            [this] { open_->setEnabled(!list_->selectedItems().isEmpty()); });
    connect(open_, &QPushButton::clicked, this, &ConnectDialog::follow);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
}

QString ConnectDialog::said() const {
    return said_->text();
}

QString ConnectDialog::urlOf(const QString& typed) const {
    QString machine = is_elsewhere(typed) ? typed : u"ssh://"_s + typed;
    if (machine.count(u'/') > 2) {
        return machine;
    }
    return machine + settings_.dialog(u"folder of "_s + machine, u"/~/"_s).toString();
}

void ConnectDialog::look(const QString& place) {
    said_->setText(u"Asking %1…"_s.arg(machine_of(place)));
    listing_.start(
        [place](const std::stop_token&) {
            const std::string url = place.toStdString();
            const remote::Looked looked = remote::look(url);
            if (looked.kind == remote::Kind::none) {
                throw InputError(url, "a folder", "nothing", "check its name");
            }
            Listing listing{QString::fromStdString(remote::parse_address(url).machine() + looked.path), {}};
            if (looked.kind == remote::Kind::file || looked.kind == remote::Kind::trace) {
                listing.url = listing.url.section(u'/', 0, -2);
            }
            listing.entries = remote::list(listing.url.toStdString());
            return listing;
        },
        [this](const Listing& listing) { showListing(listing); },
        [this](const QString& sentence) { said_->setText(sentence); });
}

void ConnectDialog::showListing(const Listing& listing) {
    url_ = listing.url;
    const QString machine = machine_of(url_);
    QStringList hosts = settings_.dialog(u"hosts"_s, QStringList()).toStringList();
    const QString host = machine.mid(6);
    hosts.removeAll(host);
    hosts.prepend(host);
    settings_.setDialog(u"hosts"_s, QStringList(hosts.mid(0, most_hosts)));
    settings_.setDialog(u"folder of "_s + machine, url_.mid(machine.size()));
    host_->setCurrentText(host);
    folder_->setEnabled(true);
    folder_->setText(url_.mid(machine.size()));
    list_->clear();
    const auto add = [this](const QString& name, remote::Kind kind, qint64 size, qint64 time) {
        auto* item = new QTreeWidgetItem(
            list_, {name, words_of(kind), size > 0 ? format_bytes(size) : QString(),
                    time > 0 ? QLocale().toString(QDateTime::fromMSecsSinceEpoch(time / 1'000'000),
                                                  QLocale::ShortFormat)
                             : QString()});
        item->setData(0, kind_role, static_cast<int>(kind));
        item->setTextAlignment(2, Qt::AlignRight | Qt::AlignVCenter);
        return item;
    };
    if (url_.size() > machine.size() + 1) {
        add(u".."_s, remote::Kind::folder, 0, 0);
    }
    int traces = 0;
    int checkpoints = 0;
    // Shards are one run, which opens under the name that they share.
    struct Whole {
        qint64 shards = 0, size = 0, time = 0;
    };
    std::map<QString, Whole> wholes;
    for (const remote::Entry& entry : listing.entries) {
        const QString name = QString::fromStdString(entry.name);
        if (const auto shard = parse_shard_name(entry.name); shard && entry.kind == remote::Kind::trace) {
            Whole& whole = wholes[path_text(shard->trace)];
            ++whole.shards;
            whole.size += static_cast<qint64>(entry.size);
            whole.time = std::max<qint64>(whole.time, entry.time);
            continue;
        }
        if (entry.kind != remote::Kind::file && entry.kind != remote::Kind::none && !name.startsWith(u'.')) {
            add(name, entry.kind, entry.kind == remote::Kind::trace ? static_cast<qint64>(entry.size) : 0,
                entry.time);
            traces += entry.kind == remote::Kind::trace ? 1 : 0;
            checkpoints += entry.kind == remote::Kind::checkpoint ? 1 : 0;
        }
    }
    for (const auto& [name, whole] : wholes) {
        add(name, remote::Kind::trace, whole.size, whole.time)
            ->setText(1, u"trace, %1 shards"_s.arg(whole.shards));
        ++traces;
    }
    said_->setText(u"Connected to %1. Traces here: %2, checkpoints: %3."_s.arg(host, QString::number(traces),
                                                                               QString::number(checkpoints)));
    if (list_->topLevelItemCount() > 0) {
        list_->setCurrentItem(list_->topLevelItem(0));
    }
    list_->setFocus();
}

void ConnectDialog::follow() {
    const QTreeWidgetItem* item = list_->currentItem();
    if (item == nullptr) {
        return;
    }
    const QString name = item->text(0);
    const QString slash = url_.endsWith(u'/') ? QString() : u"/"_s;
    if (name == QLatin1String("..")) {
        const QString above = url_.section(u'/', 0, -2);
        return look(above == machine_of(url_) ? above + u'/' : above);
    }
    const QString url = url_ + slash + name;
    if (static_cast<remote::Kind>(item->data(0, kind_role).toInt()) == remote::Kind::folder) {
        return look(url);
    }
    Q_EMIT chosen(url);
    accept();
}

} // namespace ponderscope
