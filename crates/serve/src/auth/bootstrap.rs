//! The first token of a state directory, for whoever started the server.

use std::path::{Path, PathBuf};

use glovebox_model::{Code, Error, Result, Role, SpaceId, Stage, Token, TokenId, TokenName};
use glovebox_store::{Actor, Store, TokenFilter};
use jiff::Timestamp;

use super::key::{TokenKey, create_own, random, read_own};
use super::secret::Secret;

const FILE: &str = "token";
const LONGEST: usize = 256;

/// Writes an admin token of the space `local` to `directory/token`, readable by its owner alone,
/// and gives the path. The token of an earlier start is kept for as long as it is valid.
pub fn bootstrap(store: &Store, key: &TokenKey, directory: &Path) -> Result<PathBuf> {
    let path = directory.join(FILE);
    if let Some(bytes) = read_own(&path, LONGEST)? {
        if is_valid(store, key, &bytes)? {
            return Ok(path);
        }
        std::fs::remove_file(&path).map_err(|error| {
            let message = format!("the old token `{}` cannot be replaced", path.display());
            Error::new(Code::StoreUnavailable, Stage::Open, message).caused_by(error)
        })?;
    }
    let by = Actor {
        token_id: None,
        name: "glovebox serve".to_owned(),
    };
    let name = name(directory)?;
    revoke_older(store, &name, &by)?;
    let (mut id, mut secret) = ([0; 16], [0; 32]);
    random(&mut id)?;
    random(&mut secret)?;
    let id = TokenId::from_random(id);
    let secret = Secret::of(&id, &secret);
    let token = Token {
        token_id: id,
        name,
        role: Role::Admin,
        space_id: SpaceId::local(),
        scopes: Role::Admin.scopes(),
        user_id: None,
        agent_id: None,
        conversation_id: None,
        created_at: Timestamp::now(),
        expires_at: None,
        revoked_at: None,
    };
    store.create_token(&token, &key.hash(&secret), &by)?;
    match create_own(&path, format!("{}\n", secret.reveal()).as_bytes())? {
        true => Ok(path),
        // Another server of the same directory was faster; its token is as good.
        false => {
            store.revoke_token(&token.token_id, &by)?;
            bootstrap(store, key, directory)
        }
    }
}

/// One for each state directory: servers of several machines may share a database.
fn name(directory: &Path) -> Result<TokenName> {
    let host = rustix::system::uname();
    let mut place = blake3::Hasher::new();
    place.update(host.nodename().to_bytes_with_nul());
    place.update(directory.as_os_str().as_encoded_bytes());
    let place = place.finalize().to_hex();
    format!("bootstrap-{}", &place[..12])
        .parse()
        .map_err(|error| Error::new(Code::Internal, Stage::Open, format!("{error}")))
}

fn is_valid(store: &Store, key: &TokenKey, bytes: &[u8]) -> Result<bool> {
    let text = String::from_utf8_lossy(bytes);
    let Some(secret) = Secret::parse(text.trim_end()) else {
        return Ok(false);
    };
    let found = store.token(secret.id())?;
    Ok(found.is_some_and(|(token, hash)| {
        token.is_usable(Timestamp::now())
            && bool::from(super::secret::same(&hash, &key.hash(&secret)))
    }))
}

/// Those whose file is gone: nobody has them any more, and a name is given once.
fn revoke_older(store: &Store, name: &TokenName, by: &Actor) -> Result<()> {
    let mut filter = TokenFilter {
        space: Some(SpaceId::local()),
        ..TokenFilter::default()
    };
    loop {
        let page = store.tokens(&filter)?;
        for token in page.items.iter().filter(|token| token.name == *name) {
            store.revoke_token(&token.token_id, by)?;
        }
        if page.next.is_none() {
            return Ok(());
        }
        filter.cursor = page.next;
    }
}
