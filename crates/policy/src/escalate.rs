//! How far an escalation may go: what a person may give by approval, and what nobody gives.

use glovebox_model::{Code, Error, Guarantee, LimitField, NetworkMode, Result, Stage};

use crate::effective::{Effective, Exceeded, WITHOUT_NETWORK};
use crate::field::Field;
use crate::resolve::sentence;
use crate::system::System;

/// Refuses what lies beyond a ceiling. `effective` holds what was asked for.
pub(crate) fn check_escalation(
    exceeded: &[Exceeded],
    effective: &Effective,
    system: &System,
) -> Result<()> {
    for it in exceeded {
        match &it.field {
            Field::Limit(LimitField::Wall) => {
                return Err(refuse(it, "the time limit cannot be raised by approval")
                    .hint(format!("ask for `{}` or less", it.allowed))
                    .hint("or let the operator raise `timeout` in the layer named above"));
            }
            Field::Limit(field) => {
                let most = field.get(system.ceilings());
                let asked = effective.limits[*field as usize].value.raw;
                if asked > most {
                    let (key, most) = (field.key(), field.show(most));
                    let why = format!("the ceiling of `{key}` is `{most}`");
                    return Err(refuse(it, &why)
                        .hint(format!("ask for `{most}` or less"))
                        .hint(format!("or raise `{key}` under `[ceilings]`")));
                }
            }
            Field::Network | Field::AllowNet => check_network(it, effective, system)?,
            Field::Workspace | Field::Env(_) => {}
            Field::EnvAllow
            | Field::Tier
            | Field::Security
            | Field::LimitsDemand
            | Field::Approval
            | Field::Require
            | Field::Backend
            | Field::Runtime
            | Field::Image => {
                let why = format!("`{}` cannot be loosened by approval", it.field);
                return Err(refuse(it, &why).hint(format!("ask for `{}`", it.allowed)));
            }
        }
    }
    Ok(())
}

fn check_network(it: &Exceeded, effective: &Effective, system: &System) -> Result<()> {
    let asked = effective.network.value;
    let most = system.network_ceiling();
    if asked > most {
        let why = format!("the ceiling of `network` is `{most}`");
        return Err(refuse(it, &why).hint(format!(
            "let the operator set `network = \"{asked}\"` under `[ceilings]`"
        )));
    }
    // A list that no mode reaches would be approved for nothing.
    if it.field == Field::AllowNet && asked < NetworkMode::Allowlist {
        return Err(refuse(
            it,
            "`allow_net` has no meaning without a `network` that reaches it",
        ));
    }
    let demands = |held: &crate::effective::Held<std::collections::BTreeSet<Guarantee>>| {
        held.value.contains(&Guarantee::NoNetwork)
    };
    match effective.require.iter().find(|held| demands(held)) {
        Some(held) if asked > WITHOUT_NETWORK => {
            let why = format!("{} requires `no_network`", held.by);
            Err(refuse(it, &why).hint("a requirement cannot be loosened by approval"))
        }
        Some(_) | None => Ok(()),
    }
}

fn refuse(it: &Exceeded, why: &str) -> Error {
    let message = format!("{}; {why}", sentence(it));
    let error = Error::new(Code::PolicyDenied, Stage::Resolve, message);
    match &it.by.source {
        Some(source) => error.at_rule(source.file.clone(), source.line),
        None => error,
    }
}
