//! The key that signs the ledger's head and its checkpoints, kept in `ledger.key`.

use std::fs::File;
use std::path::{Path, PathBuf};

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use glovebox_model::{Code, Error, Result, Stage};
use serde::{Deserialize, Serialize};

use super::encoding::{Hash, encode};
use crate::failure::{Doing, from_io};
use crate::hex;
use crate::private_file::{KeyFault, KeyForm, PrivateFault, load_key, load_or_create_key};

pub(crate) type PublicKey = [u8; 32];
pub(crate) type SignatureBytes = [u8; 64];

/// What a signature says. A head claims that nothing follows; a checkpoint does not, so a kept
/// checkpoint can never be passed off as the head of a ledger whose tail was cut.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Claim {
    Head,
    Checkpoint,
}

impl Claim {
    fn message(self, space: &str, seq: u64, hash: &Hash) -> Vec<u8> {
        let domain = match self {
            Self::Head => "glovebox-ledger-head-v1",
            Self::Checkpoint => "glovebox-ledger-checkpoint-v1",
        };
        encode(&[domain, space, &seq.to_string(), &hex::encode(hash)])
    }

    pub(crate) fn holds(
        self,
        space: &str,
        seq: u64,
        hash: &Hash,
        key: &PublicKey,
        signature: &SignatureBytes,
    ) -> bool {
        VerifyingKey::from_bytes(key).is_ok_and(|key| {
            let signature = Signature::from_bytes(signature);
            key.verify_strict(&self.message(space, seq, hash), &signature)
                .is_ok()
        })
    }
}

#[derive(Debug)]
pub(crate) struct LedgerKey(SigningKey);

fn unconfirmed(path: &Path) -> PathBuf {
    path.with_extension("key.new")
}

impl LedgerKey {
    /// `None` when there is no key yet.
    pub(crate) fn load(path: &Path) -> Result<Option<Self>> {
        let key = load_key(path, KeyForm::Hex).map_err(|fault| unusable(path, fault))?;
        Ok(key.map(|seed| Self(SigningKey::from_bytes(&seed))))
    }

    /// The first of several processes makes the key; all get the same.
    pub(crate) fn load_or_create(path: &Path) -> Result<Self> {
        let seed = load_or_create_key(path, KeyForm::Hex).map_err(|fault| unusable(path, fault))?;
        Ok(Self(SigningKey::from_bytes(&seed)))
    }

    /// The key of a ledger that is only being begun. It has its name when [`LedgerKey::confirm`] was
    /// called, after the first commit: whoever is killed before leaves no key without its ledger.
    pub(crate) fn begin(path: &Path) -> Result<Self> {
        match Self::load(path)? {
            Some(key) => Ok(key),
            None => Self::load_or_create(&unconfirmed(path)),
        }
    }

    /// To be called only when the ledger that it signs is there. A key that has the name already is
    /// never replaced.
    pub(crate) fn confirm(path: &Path) -> Result<()> {
        let what = format!("name the ledger's key `{}`", path.display());
        let unconfirmed = unconfirmed(path);
        match std::fs::hard_link(&unconfirmed, path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            linked => linked.doing(&what)?,
        }
        let parent = path.parent().unwrap_or(Path::new("."));
        let parent = File::open(parent).doing(&what)?;
        parent.sync_all().doing(&what)?;
        match std::fs::remove_file(&unconfirmed) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed.doing(&what),
        }
    }

    pub(crate) fn public(&self) -> PublicKey {
        self.0.verifying_key().to_bytes()
    }

    pub(crate) fn sign(&self, claim: Claim, space: &str, seq: u64, hash: &Hash) -> SignatureBytes {
        self.0.sign(&claim.message(space, seq, hash)).to_bytes()
    }

    pub(crate) fn checkpoint(&self, space: &str, seq: u64, hash: &Hash) -> Checkpoint {
        Checkpoint {
            space_id: space.to_owned(),
            seq,
            hash: hex::encode(hash),
            public_key: hex::encode(&self.public()),
            signature: hex::encode(&self.sign(Claim::Checkpoint, space, seq, hash)),
        }
    }
}

fn unusable(path: &Path, fault: KeyFault) -> Error {
    let shown = path.display();
    let refused = |message| Error::new(Code::StoreUnavailable, Stage::Open, message);
    match fault {
        KeyFault::Unfit(PrivateFault::Unreadable(error)) => {
            from_io(&error, &format!("read the ledger's key `{shown}`"))
        }
        KeyFault::Unfit(PrivateFault::Exposed | PrivateFault::Foreign) => {
            refused(format!("the ledger's key `{shown}` is not private")).hint(format!(
                "if nobody can have copied it: `chmod 600 {shown}; chown $(id -u) {shown}`"
            ))
        }
        KeyFault::Unfit(PrivateFault::NotRegular) => {
            refused(format!("the ledger's key `{shown}` is not a regular file"))
                .hint("put the file itself there, not a link to it")
        }
        KeyFault::Damaged => refused(format!("`{shown}` is not a ledger key"))
            .hint("restore `ledger.key` from a copy of the state directory"),
        KeyFault::Unmade(error) => from_io(&error, &format!("write `{shown}`")),
    }
}

/// A signed statement that a ledger had this entry. Kept outside, it proves a cut tail or a full
/// rewrite. The last line of an export is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Checkpoint {
    pub space_id: String,
    pub seq: u64,
    pub hash: String,
    pub public_key: String,
    pub signature: String,
}

impl Checkpoint {
    /// Whether the signature is that of the key it names.
    pub fn is_signed(&self) -> bool {
        let parts = (
            hex::decode(&self.hash),
            hex::decode(&self.public_key),
            hex::decode(&self.signature),
        );
        let (Some(hash), Some(key), Some(signature)) = parts else {
            return false;
        };
        Claim::Checkpoint.holds(&self.space_id, self.seq, &hash, &key, &signature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_key_is_made_once_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.key");
        assert!(LedgerKey::load(&path).unwrap().is_none());
        let made = LedgerKey::load_or_create(&path).unwrap().public();
        assert_eq!(LedgerKey::load_or_create(&path).unwrap().public(), made);
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);

        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = LedgerKey::load(&path).unwrap_err();
        assert_eq!(error.code, Code::StoreUnavailable);
        assert!(error.hints[0].contains("chmod 600"));
    }

    #[test]
    fn a_checkpoint_is_not_a_head() {
        let dir = tempfile::tempdir().unwrap();
        let key = LedgerKey::load_or_create(&dir.path().join("key")).unwrap();
        let (hash, public) = ([7; 32], key.public());
        let signature = key.sign(Claim::Checkpoint, "local", 3, &hash);
        assert!(Claim::Checkpoint.holds("local", 3, &hash, &public, &signature));
        assert!(!Claim::Head.holds("local", 3, &hash, &public, &signature));
        assert!(!Claim::Checkpoint.holds("other", 3, &hash, &public, &signature));
        assert!(!Claim::Checkpoint.holds("local", 4, &hash, &public, &signature));

        let mut checkpoint = key.checkpoint("local", 3, &hash);
        assert!(checkpoint.is_signed());
        checkpoint.seq = 2;
        assert!(!checkpoint.is_signed());
    }
}
