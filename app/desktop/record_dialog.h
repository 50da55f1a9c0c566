// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/checkpoint_inquiry.h"
#include "app/desktop/record_command.h"

#include <QDialog>
#include <QTimer>

class QComboBox;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QPushButton;
class QRadioButton;
class QSpinBox;

namespace ponderscope {

class CommandLine;
class PathEdit;
class Settings;
class Theme;

/// Asks what to record. Shows the command line that will run, so that it can be run without the window.
class RecordDialog : public QDialog {
    Q_OBJECT
public:
    /// \p openTrace: the trace on the screen, to which the run is added unless the user says otherwise; empty
    /// when there is none.
    RecordDialog(Settings& settings, Theme& theme, const QString& openTrace, QWidget* parent = nullptr);

    void offerCheckpoints(const QStringList& folders);
    void setRequest(const RecordRequest& request);
    [[nodiscard]] RecordRequest request() const;
    [[nodiscard]] QString problem() const;
    [[nodiscard]] QString commandLine() const;
    /// A description of the chosen folder, or an error message.
    [[nodiscard]] QString aboutCheckpoint() const;
    [[nodiscard]] QStringList offeredMethods() const; ///< in their order; "" is the checkpoint's own
    [[nodiscard]] CheckpointInquiry& inquiry() { return inquiry_; }
    /// The choices become the next dialog's defaults.
    void remember();

protected:
    bool event(QEvent* event) override;

private:
    void dressFields(const Theme& theme); ///< ranges, names, tips and choices
    void layOut();
    void orderTabs();
    void connectFields();
    [[nodiscard]] RecordRequest lastRequest() const;
    void check();
    void inquire(); ///< about the folder that is named now
    void offerMethods(const CheckpointAbout& about);
    void offerPolicies();
    [[nodiscard]] QString suggestedTrace() const;

    Settings& settings_;
    QString openTrace_;
    CheckpointInquiry inquiry_;
    CheckpointAbout known_; ///< of the folder that was asked about last; empty while that is not known
    QTimer asking_;
    PathEdit* checkpoint_;
    QLabel* about_;
    QRadioButton* fromFile_;
    QRadioButton* fromPrompt_;
    PathEdit* textFile_;
    QPlainTextEdit* prompt_;
    QComboBox* method_;
    QComboBox* policy_;
    QLineEdit* more_; ///< further options
    QComboBox* device_;
    QComboBox* dtype_;
    QComboBox* level_;
    QLabel* price_;
    QLineEdit* name_;
    QSpinBox* context_;
    QSpinBox* stride_;
    QSpinBox* batch_;
    PathEdit* trace_;
    QLabel* problem_;
    CommandLine* command_;
    QPushButton* start_ = nullptr;
};

} // namespace ponderscope
