//! Requests as effects: those that a simulated way out saw, those that a real one let through, and
//! what a simulation's are worth when it is done for real.

use glovebox_gateway::{Previewed, PreviewedRequest, Seen};
use glovebox_model::{Attempt, Deed, Effect, NetCode, NetworkRequest, Spoken};

use super::gathering::Observed;

/// Of a simulation.
pub(crate) fn request(seen: &Seen) -> Observed {
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
        deed: Deed::NetworkRequest(seen.request()),
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
            approach: attempt.approach,
            spoken: attempt.spoken,
            host: attempt.host.clone(),
            port: attempt.port,
            code: attempt.code,
            method: attempt.method.clone(),
            path: attempt.path.clone(),
            body_bytes: attempt.sent,
            body_digest: None,
        }),
    })
}

/// What a simulation showed of the outside, and policy would let happen.
pub(crate) fn previewed(effects: &[Effect]) -> Previewed {
    let requests = effects.iter().filter_map(|effect| match &effect.deed {
        // What was not seen to its end, or not seen inside, would let anything through.
        Deed::NetworkRequest(it) if it.method.is_some() != it.body_digest.is_some() => None,
        Deed::NetworkRequest(it) if it.spoken == Spoken::Tls => None,
        Deed::NetworkRequest(it) if effect.would_succeed && it.spoken != Spoken::Dns => {
            Some(PreviewedRequest::from(it))
        }
        _ => None,
    });
    Previewed::new(requests)
}
