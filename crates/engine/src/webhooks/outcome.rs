//! What an attempt to deliver a message means for the next one.

use std::time::Duration;

use glovebox_egress::client::Delivered;
use glovebox_egress::{Refusal, RefusalCode};
use glovebox_model::Error;
use glovebox_store::Attempted;

/// Then it is given up.
pub(crate) const ATTEMPTS_MOST: u32 = 5;

const WAIT_LEAST: Duration = Duration::from_secs(2);
const WAIT_MOST: Duration = Duration::from_secs(60);
/// A receiver that asks for more is not waited for.
const ASKED_MOST: Duration = Duration::from_secs(3600);

/// Before the attempt after this many: 2, 6, 18, 54 seconds.
fn wait(attempts: u32) -> Duration {
    let factor = 3_u32.saturating_pow(attempts.saturating_sub(1));
    WAIT_LEAST.saturating_mul(factor).min(WAIT_MOST)
}

pub(crate) fn judge(answer: &Result<Delivered, Refusal>, attempts: u32) -> Attempted {
    let answered = match answer {
        Ok(answered) => answered,
        Err(refusal) => {
            let problem = format!("{}: {}", refusal.code, refusal.message);
            return match is_passing(refusal.code) {
                true => again(None, problem, wait(attempts), attempts),
                false => Attempted::Failed {
                    status: None,
                    problem,
                },
            };
        }
    };
    let status = answered.status;
    match status {
        200..=299 => Attempted::Delivered { status },
        429 | 500..=599 => {
            let asked = answered.retry_after.map(Duration::from_secs);
            let after = asked.map_or_else(
                || wait(attempts),
                |it| it.clamp(Duration::from_secs(1), ASKED_MOST),
            );
            let problem = format!("the receiver answered {status}");
            again(Some(status), problem, after, attempts)
        }
        300..=399 => Attempted::Failed {
            status: Some(status),
            problem: format!("the receiver answered {status}: redirects are not followed"),
        },
        _ => Attempted::Failed {
            status: Some(status),
            problem: format!("the receiver answered {status}"),
        },
    }
}

fn again(status: Option<u16>, problem: String, after: Duration, attempts: u32) -> Attempted {
    match attempts >= ATTEMPTS_MOST {
        true => Attempted::Failed { status, problem },
        false => Attempted::Again {
            status,
            problem,
            after,
        },
    }
}

/// It could not even be made: its key may be readable again, or its approval.
pub(crate) fn unmade(error: &Error, attempts: u32) -> Attempted {
    again(None, error.message.clone(), wait(attempts), attempts)
}

/// Whether time may mend it.
fn is_passing(code: RefusalCode) -> bool {
    match code {
        RefusalCode::DnsFailed
        | RefusalCode::TlsError
        | RefusalCode::ConnectionTimeout
        | RefusalCode::ReadTimeout
        | RefusalCode::ResponseTooLarge
        | RefusalCode::DecodeError
        | RefusalCode::RateLimited => true,
        RefusalCode::InvalidUrl
        | RefusalCode::UnsupportedScheme
        | RefusalCode::UnsupportedMethod
        | RefusalCode::UserinfoNotAllowed
        | RefusalCode::PortNotAllowed
        | RefusalCode::DestinationBlocked
        | RefusalCode::RedirectLimitExceeded
        | RefusalCode::RedirectBlocked
        | RefusalCode::UnsupportedContentType
        | RefusalCode::ExtractFailed
        | RefusalCode::SuspectedSecretInUrl => false,
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use glovebox_egress::client::AnswerSource;

    use super::*;

    fn answered(status: u16, retry_after: Option<u64>) -> Result<Delivered, Refusal> {
        Ok(Delivered {
            status,
            retry_after,
            via: AnswerSource {
                addresses: Vec::new(),
                peer: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)),
                certificate_sha256: None,
            },
        })
    }

    fn waits(answer: &Result<Delivered, Refusal>, attempts: u32) -> Option<u64> {
        match judge(answer, attempts) {
            Attempted::Again { after, .. } => Some(after.as_secs()),
            Attempted::Delivered { .. } | Attempted::Failed { .. } => None,
        }
    }

    #[test]
    fn what_may_pass_is_tried_five_times_with_longer_and_longer_waits() {
        let broken = answered(500, None);
        let all: Vec<_> = (1..=5).map(|attempt| waits(&broken, attempt)).collect();
        assert_eq!(all, [Some(2), Some(6), Some(18), Some(54), None]);
        let slow = Err(Refusal::new(RefusalCode::ReadTimeout, "x"));
        assert_eq!(waits(&slow, 1), Some(2));
        assert!(matches!(judge(&slow, 5), Attempted::Failed { .. }));
    }

    #[test]
    fn a_receiver_says_when_to_come_back() {
        assert_eq!(waits(&answered(429, Some(9)), 1), Some(9));
        assert_eq!(waits(&answered(503, Some(0)), 4), Some(1));
        assert_eq!(waits(&answered(503, Some(u64::MAX)), 1), Some(3600));
    }

    #[test]
    fn what_no_time_mends_is_given_up_at_once() {
        for status in [301, 302, 307, 400, 401, 404, 408, 410] {
            let judged = judge(&answered(status, None), 1);
            assert!(matches!(judged, Attempted::Failed { .. }), "{status}");
        }
        let blocked = Err(Refusal::new(RefusalCode::DestinationBlocked, "x"));
        assert!(matches!(judge(&blocked, 1), Attempted::Failed { .. }));
        assert_eq!(
            judge(&answered(204, None), 5),
            Attempted::Delivered { status: 204 }
        );
    }
}
