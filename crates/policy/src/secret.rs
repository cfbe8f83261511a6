//! The secrets that a call wants, as far as that can be judged without their values.

use std::collections::BTreeSet;

use glovebox_model::{
    Call, Code, Delivery, EnvKey, EnvVar, Error, Result, SecretName, SecretUse, Stage,
};

use crate::env::RESERVED_PREFIX;

/// More than any program needs; each is a file, a descriptor or a variable.
const SECRETS_MAX: usize = 64;

/// A secret that may be had without asking, in the ways for which somebody granted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantedSecret {
    pub name: SecretName,
    pub deliveries: BTreeSet<Delivery>,
}

impl GrantedSecret {
    pub(crate) fn gives(&self, wanted: &SecretUse) -> bool {
        self.name == wanted.name && self.deliveries.contains(&wanted.delivery)
    }
}

/// The variable that a secret is known by inside: the one that is named, or else the secret's
/// name in capitals with `_` for whatever no variable's name may hold.
pub fn secret_variable(wanted: &SecretUse) -> Result<EnvKey> {
    if let Some(key) = &wanted.variable {
        return Ok(key.clone());
    }
    let fit = |it: char| match it {
        '.' | '-' => '_',
        it => it.to_ascii_uppercase(),
    };
    let name: String = wanted.name.as_str().chars().map(fit).collect();
    name.parse().map_err(|_| {
        let message = format!("secret `{}` gives no name of a variable", wanted.name);
        refuse(message).hint(format!("name one: `--secret {}:VARIABLE`", wanted.name))
    })
}

pub(crate) fn check_secrets(call: &Call, env: &[EnvVar]) -> Result<()> {
    let wanted = &call.secrets;
    if wanted.len() > SECRETS_MAX {
        let message = format!(
            "{} secrets are wanted, more than {SECRETS_MAX}",
            wanted.len()
        );
        return Err(refuse(message));
    }
    let (mut names, mut variables) = (BTreeSet::new(), BTreeSet::new());
    for it in wanted {
        if !names.insert(&it.name) {
            let message = format!("secret `{}` is wanted twice", it.name);
            return Err(refuse(message).hint("want it once, in one way"));
        }
        let variable = secret_variable(it)?;
        if variable.as_str().starts_with(RESERVED_PREFIX) {
            let message = format!(
                "the variable `{variable}` of secret `{}` is reserved: keys beginning with \
                 `{RESERVED_PREFIX}` are set by Glovebox",
                it.name
            );
            return Err(refuse(message).hint("choose another name"));
        }
        if is_taken(variable.as_str()) {
            let message = format!("secret `{}` cannot be known as `{variable}`", it.name);
            let hint = format!("name another variable: `--secret {}:VARIABLE`", it.name);
            return Err(refuse(message).hint(hint));
        }
        let is_set = env.iter().any(|var| var.key == variable);
        if is_set || !variables.insert(variable.clone()) {
            let other = match is_set {
                true => "the environment",
                false => "another secret",
            };
            let message = format!(
                "the variable `{variable}` of secret `{}` is also set by {other}",
                it.name
            );
            return Err(refuse(message).hint("choose another name for one of the two"));
        }
    }
    Ok(())
}

/// What programs depend on, and what would change how they are loaded or where they connect.
fn is_taken(key: &str) -> bool {
    const TAKEN: [&str; 12] = [
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LC_ALL", "TMPDIR", "IFS",
        "ENV", "BASH_ENV",
    ];
    TAKEN.contains(&key) || key.starts_with("LD_") || key.to_ascii_uppercase().ends_with("_PROXY")
}

fn refuse(message: String) -> Error {
    Error::new(Code::InvalidArgument, Stage::Resolve, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_depend_on_is_no_secrets_variable() {
        for key in ["PATH", "HOME", "LD_PRELOAD", "https_proxy", "BASH_ENV"] {
            assert!(is_taken(key), "{key}");
        }
        for key in ["GITHUB_TOKEN", "PATHS", "OLD_KEY", "PROXY_USER"] {
            assert!(!is_taken(key), "{key}");
        }
    }
}
