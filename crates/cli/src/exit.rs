//! Exit codes: the program's own, or one that says whose turn it is.

use std::process::ExitCode;

use glovebox_model::{Code, Error, Exec, Status};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit(u8);

impl Exit {
    pub(crate) const SUCCESS: Self = Self(0);
    pub(crate) const FAILURE: Self = Self(1);
    const USAGE: Self = Self(2);
    pub(crate) const REFUSED: Self = Self(3);
    const NOT_AUTHENTICATED: Self = Self(4);
    const TIMED_OUT: Self = Self(124);
    const OURS: Self = Self(125);
    const NOT_EXECUTABLE: Self = Self(126);
    pub(crate) const NOT_FOUND: Self = Self(127);
    const KILLED: Self = Self(137);
    pub(crate) const CANCELED: Self = Self(130);
    const HELD: Self = Self(6);
    pub(crate) const WAITING: Self = Self(5);

    pub(crate) fn of_record(record: &Exec) -> Self {
        match record.status {
            Status::Succeeded => Self::SUCCESS,
            Status::Failed => match (record.exit_code, record.signal, &record.error) {
                (Some(code), ..) => Self(u8::try_from(code).unwrap_or(Self::OURS.0)),
                (None, Some(signal), _) => Self(u8::try_from(128 + signal).unwrap_or(Self::OURS.0)),
                (None, None, Some(error)) => Self::of_error(error),
                (None, None, None) => Self::OURS,
            },
            Status::TimedOut => Self::TIMED_OUT,
            Status::Killed => Self::KILLED,
            // A server that went away ends an exec as its caller does; the error tells them apart.
            Status::Canceled => match record.error.as_ref().map(|error| error.code) {
                Some(Code::ShuttingDown | Code::Lost) => Self::OURS,
                _ => Self::CANCELED,
            },
            Status::PolicyDenied => Self::REFUSED,
            Status::Held => Self::HELD,
            Status::AwaitingApproval => Self::WAITING,
            Status::Queued | Status::Running | Status::Lost | Status::Error => Self::OURS,
        }
    }

    /// With `--no-wait`, what people have to agree to first is one code, whether a server keeps the
    /// request or nobody can.
    pub(crate) fn of_run(record: &Exec, no_wait: bool) -> Self {
        match record.error.as_ref().map(|error| error.code) {
            Some(Code::ApprovalUnavailable) if no_wait => Self::WAITING,
            _ => Self::of_record(record),
        }
    }

    pub(crate) fn of_error(error: &Error) -> Self {
        match error.code {
            Code::PolicyDenied | Code::Denied | Code::ApprovalUnavailable => Self::REFUSED,
            Code::AwaitingApproval => Self::WAITING,
            Code::Held => Self::HELD,
            Code::InvalidArgument
            | Code::InvalidConfig
            | Code::InvalidInput
            | Code::InvalidManifest
            | Code::SkillsNotConfigured
            | Code::WorkspaceRefused
            | Code::Conflict
            | Code::IdempotencyConflict
            | Code::PayloadTooLarge => Self::USAGE,
            Code::Unauthenticated | Code::Forbidden => Self::NOT_AUTHENTICATED,
            Code::CommandNotFound => Self::NOT_FOUND,
            Code::CommandNotExecutable | Code::CwdNotFound => Self::NOT_EXECUTABLE,
            Code::Canceled => Self::CANCELED,
            Code::NotFound | Code::Expired | Code::InvalidOutput => Self::FAILURE,
            Code::Busy
            | Code::BudgetExceeded
            | Code::MethodNotAllowed
            | Code::RateLimited
            | Code::RequestTimeout
            | Code::ShuttingDown
            | Code::UnsupportedMediaType
            | Code::BackendUnavailable
            | Code::DiskFull
            | Code::Internal
            | Code::LedgerTampered
            | Code::Lost
            | Code::SetupFailed
            | Code::StoreUnavailable => Self::OURS,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::sample;
    use glovebox_model::Stage;

    #[test]
    fn a_server_that_went_away_is_not_a_caller_who_canceled() {
        for (code, expected) in [
            (None, 130),
            (Some(Code::Canceled), 130),
            (Some(Code::ShuttingDown), 125),
            (Some(Code::Lost), 125),
        ] {
            let record = Exec {
                status: Status::Canceled,
                exit_code: None,
                error: code.map(|code| Error::new(code, Stage::Run, "ended")),
                ..sample::exec(1)
            };
            assert_eq!(Exit::of_record(&record), Exit(expected), "{code:?}");
        }
    }

    #[test]
    fn every_code_says_whose_turn_it_is() {
        let exit = |code| Exit::of_error(&Error::new(code, Stage::Admit, "x"));
        for (code, expected) in [
            (Code::Unauthenticated, 4),
            (Code::Forbidden, 4),
            (Code::PolicyDenied, 3),
            (Code::RateLimited, 125),
            (Code::BudgetExceeded, 125),
            (Code::StoreUnavailable, 125),
            (Code::Lost, 125),
            (Code::ShuttingDown, 125),
            (Code::Busy, 125),
            (Code::PayloadTooLarge, 2),
            (Code::Conflict, 2),
            (Code::NotFound, 1),
            (Code::Canceled, 130),
        ] {
            assert_eq!(exit(code), Exit(expected), "{code}");
        }
        for code in Code::ALL {
            assert_ne!(exit(*code), Exit::SUCCESS, "{code}");
        }
    }
}
