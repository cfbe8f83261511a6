//! Requests as effects: those that a simulated way out saw, those that a real one let through, and
//! what a simulation's are worth when it is done for real.

use glovebox_capture::Secrets;
use glovebox_gateway::{Previewed, Seen};
use glovebox_model::{Attempt, Deed, Effect, NetCode, NetworkRequest, Spoken};

use super::gathering::Observed;
use super::query::shown;

/// Of a simulation.
pub(crate) fn request(seen: &Seen, masks: &Secrets) -> Observed {
    // The hint says why, too.
    let said = seen.hint.as_ref().or(seen.why.as_ref());
    let refusal = (!seen.would_succeed()).then(|| match said {
        Some(said) => format!("{}: {said}", seen.code),
        None => seen.code.to_string(),
    });
    let simulated_result = seen.answer.and_then(|it| serde_json::to_value(it).ok());
    Observed {
        refusal,
        simulated_result,
        deed: Deed::NetworkRequest(NetworkRequest {
            query: seen.query.as_ref().map(|it| shown(it.as_str(), masks)),
            ..seen.request()
        }),
    }
}

/// Of a real run: told at its end, or when it was refused.
pub(crate) fn outward(attempt: &Attempt) -> Option<Observed> {
    if attempt.code == NetCode::Ok && !attempt.ended {
        return None;
    }
    let refusal = (attempt.code != NetCode::Ok).then(|| match &attempt.hint {
        Some(hint) => format!("{}: {hint}", attempt.code),
        None => attempt.code.to_string(),
    });
    Some(Observed {
        refusal,
        simulated_result: None,
        deed: Deed::NetworkRequest(NetworkRequest {
            method: attempt.method.clone(),
            path: attempt.path.clone(),
            body_bytes: attempt.sent,
            ..NetworkRequest::bare(
                attempt.approach,
                attempt.spoken,
                (attempt.host.clone(), attempt.port),
                attempt.code,
            )
        }),
    })
}

/// What a simulation showed of the outside, and policy would let happen.
pub(crate) fn previewed(effects: &[Effect]) -> Previewed {
    let requests = effects.iter().filter_map(|effect| match &effect.deed {
        // What was not seen inside would let anything through.
        Deed::NetworkRequest(it) if matches!(it.spoken, Spoken::Tls | Spoken::Dns) => None,
        Deed::NetworkRequest(it) => effect.would_succeed.then_some(it),
        _ => None,
    });
    Previewed::new(requests)
}
