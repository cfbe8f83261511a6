//! What revoking cannot reach: values that programs have already.

use glovebox_model::{
    Code, Delivery, Error, ExecId, GrantId, Result, SecretGiven, SecretName, SpaceId, Stage, Status,
};
use glovebox_store::{Entry, EntryFilter, ExecFilter, Store};
use serde::{Deserialize, Serialize};

/// Pages of running execs that are looked at.
const PAGES: usize = 10;

/// A running exec that has the value where nobody can take it away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Hold {
    pub exec_id: ExecId,
    pub secret: SecretName,
    pub version: u64,
    pub delivery: Delivery,
}

/// Which of the values in programs are meant.
pub(super) enum Meant<'a> {
    Secret(&'a SecretName),
    Grants(&'a [GrantId]),
}

impl Meant<'_> {
    fn fits(&self, given: &SecretGiven) -> bool {
        match self {
            Self::Secret(name) => given.name == **name,
            Self::Grants(ids) => given.grant_id.as_ref().is_some_and(|id| ids.contains(id)),
        }
    }
}

pub(super) fn holds(store: &Store, space: &SpaceId, meant: &Meant<'_>) -> Result<Vec<Hold>> {
    let mut filter = ExecFilter {
        status: Some(Status::Running),
        limit: 1000,
        ..ExecFilter::default()
    };
    let mut held = Vec::new();
    for _ in 0..PAGES {
        let page = store.list(space, &filter)?;
        for exec in page.items {
            let given = given_to(store, space, &exec.exec_id)?;
            let given = given.into_iter().filter(|given| meant.fits(given));
            // What is brokered is not in the program, and goes no further from now on.
            let inside = given.filter(|given| given.delivery != Delivery::Broker);
            held.extend(inside.map(|given| Hold {
                exec_id: exec.exec_id.clone(),
                secret: given.name,
                version: given.version,
                delivery: given.delivery,
            }));
        }
        filter.cursor = page.next;
        if filter.cursor.is_none() {
            break;
        }
    }
    Ok(held)
}

/// What the ledger says that it was given: its record says so only once it has ended.
fn given_to(store: &Store, space: &SpaceId, exec: &ExecId) -> Result<Vec<SecretGiven>> {
    let filter = EntryFilter {
        exec_id: Some(exec.clone()),
        tags: vec!["event:secret.used".to_owned()],
        limit: 1000,
        ..EntryFilter::default()
    };
    let entries = store.query(space, &filter)?.items;
    let read = |entry: Entry| serde_json::from_value(entry.body["details"].clone());
    entries
        .into_iter()
        .map(read)
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| {
            Error::new(
                Code::Internal,
                Stage::Open,
                format!("what `{exec}` was given cannot be read"),
            )
            .caused_by(error)
        })
}
