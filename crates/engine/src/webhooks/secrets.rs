//! What webhooks have to do with secrets: one may be the key, and none may be told.

use std::sync::Arc;

use glovebox_capture::Secrets;
use glovebox_model::{Correlation, Result, SecretName, SecretUse, SpaceId, Vouched};
use zeroize::Zeroizing;

use crate::secrets::SecretAccess;

/// What is kept out of a message about this space.
pub(super) fn masks(access: &SecretAccess, space: Option<&SpaceId>) -> Result<Arc<Secrets>> {
    match space {
        Some(space) => access.masks(space),
        None => Ok(Arc::new(Secrets::none())),
    }
}

/// The present value of the secret that signs messages.
pub(super) fn value(
    access: &SecretAccess,
    space: &SpaceId,
    name: &SecretName,
) -> Result<Zeroizing<Vec<u8>>> {
    let secrets = access.open()?;
    let known = secrets.get(space, name)?;
    let wanted = SecretUse {
        name: name.clone(),
        // No program gets it, so any way will do that it may be given in.
        delivery: known.deliveries.first().copied().unwrap_or_default(),
        variable: None,
    };
    let ids = Correlation::of_space(space.clone());
    let opened = secrets.open((&ids, Vouched::People), &[wanted])?;
    Ok(opened
        .into_iter()
        .next()
        .map(|it| it.value)
        .unwrap_or_default())
}
