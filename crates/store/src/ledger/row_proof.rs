//! Rows that authorise something, and what the ledger says of them. Each change of such a row comes
//! with an entry that has the digest of the whole row as it is then, or says that it was removed.
//! `ledger_rows` says which entry was the last, so that a row is compared without a search.

use std::collections::{BTreeMap, HashMap};

use glovebox_model::{Result, SpaceId};
use serde_json::{Value as Json, json};

use super::chain::{Chains, Draft, Link};
use super::encoding::{canonical, encode_bytes, sha256};
use super::entry::StoredEntry;
use super::exec_proof::believed;
use super::walk::Walk;
use crate::failure::{Doing, internal, tampered};
use crate::hex;
use crate::sql::{Row, Session, SqlResult, values};

const DOMAIN: &str = "glovebox-ledger-row-v1";
/// The body's key for the digests of rows.
const ROWS: &str = "rows";
/// Found in the text of every body that has digests of rows.
const MARK: &str = "\"rows\":{";

/// A table whose rows authorise something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Guarded {
    Approvals,
    Grants,
    Sandboxes,
    SecretGrants,
    Secrets,
    SecretsKey,
    Settings,
    Tokens,
}

/// The fields of a sandbox's record that an entry vouches for: what it is, whose, and what it was made
/// with. The others say how it stands now, and change with each exec.
const IDENTITY: [&str; 12] = [
    "/sandbox_id",
    "/space_id",
    "/name",
    "/project_id",
    "/lifetime",
    "/scope",
    "/created_at",
    "/agent_id",
    "/config",
    "/asked",
    "/config_hash",
    "/container_id",
];
/// So many of them were vouched for by the versions that had only [`Form::First`].
const IDENTITY_FIRST: usize = 7;

/// What a digest is of. Entries say which: those that were written before stay valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    First,
    /// Of a sandbox with whose it is and what it was made with.
    Second,
}

impl Form {
    const MARK: &str = "2-";

    /// Of what is written now.
    fn of(table: Guarded) -> Self {
        match table {
            Guarded::Sandboxes => Self::Second,
            _ => Self::First,
        }
    }

    /// That of what an entry says, to compare with.
    pub(super) fn said(said: Option<&Said>, table: Guarded) -> Self {
        match said.and_then(|said| said.digest.as_deref()) {
            Some(digest) if digest.starts_with(Self::MARK) => Self::of(table),
            Some(_) => Self::First,
            None => Self::of(table),
        }
    }
}

impl Guarded {
    pub(crate) const ALL: [Self; 8] = [
        Self::Approvals,
        Self::Grants,
        Self::Sandboxes,
        Self::SecretGrants,
        Self::Secrets,
        Self::SecretsKey,
        Self::Settings,
        Self::Tokens,
    ];

    pub(crate) const fn table(self) -> &'static str {
        match self {
            Self::Approvals => "approvals",
            Self::Grants => "grants",
            Self::Sandboxes => "sandboxes",
            Self::SecretGrants => "secret_grants",
            Self::Secrets => "secrets",
            Self::SecretsKey => "secrets_key",
            Self::Settings => "settings",
            Self::Tokens => "tokens",
        }
    }

    /// Of `t`. A table of one row is the operator's.
    pub(crate) const fn space(self) -> &'static str {
        match self {
            Self::SecretsKey | Self::Settings => "CAST('local' AS TEXT)",
            _ => "t.space_id",
        }
    }

    /// Of `t`, as a text.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Approvals => "t.approval_id",
            Self::Grants | Self::SecretGrants => "t.grant_id",
            Self::Sandboxes => "t.sandbox_id",
            Self::Secrets => "t.name",
            Self::SecretsKey | Self::Settings => "CAST(t.one AS TEXT)",
            Self::Tokens => "t.token_id",
        }
    }

    const fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Approvals => &[
                "approval_id",
                "space_id",
                "exec_id",
                "conversation_id",
                "opened_seq",
                "created_at",
                "open_until",
                "state",
                "record",
            ],
            Self::Grants => &[
                "grant_id",
                "space_id",
                "conversation_id",
                "kind",
                "created_at",
                "expires_at",
                "revoked_at",
                "used",
                "last_used_at",
                "record",
            ],
            Self::Sandboxes => &[
                "sandbox_id",
                "space_id",
                "opened_seq",
                "name",
                "project_id",
                "lifetime",
                "scope",
                "created_at",
                "record",
            ],
            Self::SecretGrants => &[
                "grant_id",
                "space_id",
                "secret",
                "conversation_id",
                "agent_id",
                "created_at",
                "expires_at",
                "revoked_at",
                "record",
            ],
            Self::Secrets => &["space_id", "name", "version", "last_used_at", "record"],
            Self::SecretsKey => &["one", "key_id"],
            Self::Settings => &["one", "version", "settings"],
            Self::Tokens => &[
                "token_id",
                "space_id",
                "name",
                "hash",
                "created_at",
                "expires_at",
                "revoked_at",
                "token",
            ],
        }
    }

    /// To be selected of `t` and read by [`Cells::read`].
    pub(crate) fn selected(self, session: &Session) -> String {
        let columns = self.columns().iter().map(|name| match *name {
            "hash" if session.is_shared() => "encode(t.hash, 'hex')".to_owned(),
            _ if session.is_shared() => format!("CAST(t.{name} AS TEXT)"),
            _ => format!("t.{name}"),
        });
        columns.collect::<Vec<_>>().join(", ")
    }
}

/// The columns of a row as texts.
pub(crate) struct Cells(Vec<Option<Vec<u8>>>);

impl Cells {
    /// `None`: there is no such row.
    pub(crate) fn read(table: Guarded, row: &Row<'_>, first: usize) -> SqlResult<Option<Self>> {
        let cells = (first..first + table.columns().len()).map(|index| row.cell(index));
        let cells: Vec<_> = cells.collect::<SqlResult<_>>()?;
        // A key is never null.
        Ok(cells[0].is_some().then_some(Self(cells)))
    }

    /// Of the whole row; of a secret with all its sealed values. As entries have it.
    pub(crate) fn digest(
        mut self,
        session: &Session,
        table: Guarded,
        space: &str,
        key: &str,
        form: Form,
    ) -> Result<String> {
        if table == Guarded::Sandboxes
            && let Some(record) = self.0.last_mut()
        {
            *record = record.as_deref().map(|record| identity(record, form));
        }
        let mut parts: Vec<Vec<u8>> = vec![
            DOMAIN.into(),
            table.table().into(),
            space.into(),
            key.into(),
        ];
        for (name, cell) in table.columns().iter().zip(self.0) {
            parts.push(name.as_bytes().to_vec());
            push(&mut parts, cell);
        }
        if table == Guarded::Secrets {
            for cell in sealed(session, space, key)?.into_iter().flatten() {
                push(&mut parts, cell);
            }
        }
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let digest = hex::encode(&sha256(&encode_bytes(&parts)));
        Ok(match form {
            Form::First => digest,
            Form::Second => format!("{}{digest}", Form::MARK),
        })
    }
}

/// Nothing is not an empty text.
fn push(parts: &mut Vec<Vec<u8>>, cell: Option<Vec<u8>>) {
    parts.push(match cell {
        Some(text) => [b"=", text.as_slice()].concat(),
        None => Vec::new(),
    });
}

/// A record that cannot be read is digested as it is.
fn identity(record: &[u8], form: Form) -> Vec<u8> {
    let Ok(json) = serde_json::from_slice::<Json>(record) else {
        return record.to_vec();
    };
    let fields = match form {
        Form::First => &IDENTITY[..IDENTITY_FIRST],
        Form::Second => &IDENTITY[..],
    };
    let fields: Vec<_> = fields.iter().map(|field| json.pointer(field)).collect();
    canonical(&json!(fields)).into_bytes()
}

fn sealed(session: &Session, space: &str, name: &str) -> Result<Vec<[Option<Vec<u8>>; 3]>> {
    let columns = match session.is_shared() {
        true => "CAST(version AS TEXT), key_id, encode(sealed, 'hex')",
        false => "version, key_id, sealed",
    };
    let sql = format!(
        "SELECT {columns} FROM secret_values WHERE space_id = ?1 AND name = ?2
         ORDER BY secret_values.version"
    );
    session
        .rows(&sql, values![space, name], |row| {
            Ok([row.cell(0)?, row.cell(1)?, row.cell(2)?])
        })
        .doing("read the secrets")
}

fn present(
    session: &Session,
    table: Guarded,
    space: &str,
    key: &str,
    form: Form,
) -> Result<Option<String>> {
    let sql = format!(
        "SELECT {} FROM {} t WHERE {} = CAST(?1 AS TEXT) AND {} = CAST(?2 AS TEXT)",
        table.selected(session),
        table.table(),
        table.space(),
        table.key()
    );
    let cells = session
        .row(&sql, values![space, key], |row| Cells::read(table, row, 0))
        .doing("read what an entry is about")?;
    cells
        .flatten()
        .map(|cells| cells.digest(session, table, space, key, form))
        .transpose()
}

/// The digest of a row in the form that the last entry about it has, to be exported.
pub(super) fn exported(
    session: &Session,
    table: Guarded,
    cells: Cells,
    space: &str,
    key: &str,
) -> Result<String> {
    let form = match Form::of(table) {
        Form::First => Form::First,
        Form::Second => {
            let last = last_about(session, table, space, key)?;
            Form::said(last.and_then(|(_, said)| said).as_ref(), table)
        }
    };
    cells.digest(session, table, space, key, form)
}

/// Where the last entry about a row should stand.
fn place_of(session: &Session, table: Guarded, space: &str, key: &str) -> Result<Option<i64>> {
    session
        .row(
            "SELECT seq FROM ledger_rows WHERE space_id = ?1 AND kind = ?2 AND key = ?3",
            values![space, table.table(), key],
            |row| row.get(0),
        )
        .doing("read what an entry says")
}

/// The same, and what that entry says of the row when it is believed.
fn last_about(
    session: &Session,
    table: Guarded,
    space: &str,
    key: &str,
) -> Result<Option<(i64, Option<Said>)>> {
    let Some(seq) = place_of(session, table, space, key)? else {
        return Ok(None);
    };
    let entry = believed(session, space, seq)?;
    let said = entry
        .and_then(|entry| named(&entry.body).remove(&(table.table().to_owned(), key.to_owned())));
    Ok(Some((seq, said)))
}

/// Whether a row is not as the last entry about it says, or is there when none says so. To be asked
/// before each change of it, and before it is used: the entry that follows vouches for the row as it
/// is then, and must not hide what was done to it in between.
pub(crate) fn is_forged(
    session: &Session,
    table: Guarded,
    space: &SpaceId,
    key: &str,
) -> Result<bool> {
    let last = last_about(session, table, space.as_str(), key)?;
    let said = last.as_ref().and_then(|(_, said)| said.as_ref());
    let there = present(session, table, space.as_str(), key, Form::said(said, table))?;
    let said = match last {
        None => Some(None),
        Some((_, said)) => said.map(|said| said.digest),
    };
    Ok(said != Some(there))
}

/// What was forged is not used, and nothing is built on it. That it ends is let be, and told: see
/// [`Chains::append_ending`].
pub(crate) fn ensure_unchanged(
    session: &Session,
    table: Guarded,
    space: &SpaceId,
    key: &str,
) -> Result<()> {
    if !is_forged(session, table, space, key)? {
        return Ok(());
    }
    Err(tampered(format!(
        "`{}` is not as the ledger of space `{space}` says",
        name(table, key)
    )))
}

/// A row, as entries and exports name it.
pub(crate) fn name(table: Guarded, key: &str) -> String {
    format!("{}/{key}", table.table())
}

/// What an entry says of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    /// Where the entry before about it stands; 0 when there is none.
    pub(crate) before: i64,
    /// Whether it was not as that one says.
    forged: bool,
    /// `None`: it was removed.
    pub(crate) digest: Option<String>,
}

impl Said {
    /// `BEFORE:DIGEST`, or `BEFORE!:DIGEST` of a row that was forged; a digest of the second form
    /// begins with `2-`.
    fn parse(text: &str) -> Option<Self> {
        let (before, digest) = text.split_once(':')?;
        let known = before.strip_suffix('!');
        Some(Self {
            forged: known.is_some(),
            before: known.unwrap_or(before).parse().ok()?,
            digest: (!digest.is_empty()).then(|| digest.to_owned()),
        })
    }

    fn text(&self) -> String {
        let digest = self.digest.as_deref().unwrap_or_default();
        let mark = match self.forged {
            true => "!",
            false => "",
        };
        format!("{}{mark}:{digest}", self.before)
    }
}

/// What an entry says of rows, by table and key.
pub(crate) fn named(body: &str) -> BTreeMap<(String, String), Said> {
    if !body.contains(MARK) {
        return BTreeMap::new();
    }
    let body: Json = serde_json::from_str(body).unwrap_or_default();
    let rows = body.get(ROWS).and_then(Json::as_object);
    let rows = rows.into_iter().flatten().filter_map(|(name, digest)| {
        let (table, key) = name.split_once('/')?;
        let said = digest.as_str().and_then(Said::parse)?;
        Some(((table.to_owned(), key.to_owned()), said))
    });
    rows.collect()
}

/// The first entry of the operator's chain has digests of rows, if only of none: so a ledger says
/// by itself that its rows are under proof, whatever version its database claims to have.
pub(super) fn marked(body: &str) -> Result<String> {
    with_digests(body, serde_json::Map::new())
}

/// Whether the operator's chain has digests of rows.
pub(crate) fn is_under_proof(session: &Session) -> Result<bool> {
    let bodies: Vec<String> = session
        .rows(
            &format!(
                "SELECT body FROM ledger_entries WHERE space_id = ?1 AND body LIKE '%{MARK}%'"
            ),
            values![SpaceId::local().as_str()],
            |row| row.text(0),
        )
        .doing("read the ledger")?;
    let has_digests = |body: &String| {
        let body: Json = serde_json::from_str(body).unwrap_or_default();
        body.get(ROWS).is_some()
    };
    Ok(bodies.iter().any(has_digests))
}

fn with_digests(body: &str, digests: serde_json::Map<String, Json>) -> Result<String> {
    let mut body: Json = serde_json::from_str(body)
        .map_err(|error| internal("the entry cannot be written").caused_by(error))?;
    let rows = body
        .as_object_mut()
        .map(|body| body.entry(ROWS).or_insert_with(|| json!({})));
    if let Some(Json::Object(rows)) = rows {
        rows.extend(digests);
    }
    Ok(canonical(&body))
}

/// Follows what the entries of one chain say of each row: each names the one before it. Holds some
/// bytes for each row, and nothing for an entry.
#[derive(Debug, Default)]
pub(super) struct Threads {
    last: HashMap<[u8; 16], i64>,
}

impl Threads {
    /// To be called for each entry, after the walk has passed it.
    pub(super) fn entry(
        &mut self,
        entry: &StoredEntry,
        said: &BTreeMap<(String, String), Said>,
        walk: &mut Walk<'_>,
    ) {
        for ((table, key), said) in said {
            let name = encode_bytes(&[table.as_bytes(), key.as_bytes()]);
            let mut short = [0; 16];
            short.copy_from_slice(&sha256(&name)[..16]);
            let before = self.last.insert(short, entry.seq).unwrap_or(0);
            if said.forged {
                let what = format!("`{table}/{key}` was forged, and ended by this entry");
                walk.problem_here(what);
            }
            if said.before != before {
                walk.problem_here(format!("`{table}/{key}` was put back before this entry"));
            }
        }
    }
}

impl Chains<'_> {
    /// Appends an entry that vouches for these rows as they are now.
    pub(crate) fn append_about(&mut self, draft: Draft, rows: &[(Guarded, &str)]) -> Result<Link> {
        self.append_with_digests(draft, rows, false)
    }

    /// The same for what takes something away from a row, such as revoking a token. It is done to a
    /// forged one too, and the entry says that it was forged: verification finds that for ever.
    pub(crate) fn append_ending(
        &mut self,
        draft: Draft,
        row: (Guarded, &str),
        forged: bool,
    ) -> Result<Link> {
        self.append_with_digests(draft, &[row], forged)
    }

    fn append_with_digests(
        &mut self,
        mut draft: Draft,
        rows: &[(Guarded, &str)],
        forged: bool,
    ) -> Result<Link> {
        let session = self.session();
        let space = draft.space.clone();
        let mut digests = serde_json::Map::new();
        for (table, key) in rows {
            let digest = present(session, *table, space.as_str(), key, Form::of(*table))?;
            let before = place_of(session, *table, space.as_str(), key)?;
            let said = Said {
                before: before.unwrap_or(0),
                forged,
                digest,
            };
            digests.insert(name(*table, key), json!(said.text()));
        }
        draft.body = with_digests(&draft.body, digests)?;
        let link = self.append(draft)?;
        for (table, key) in rows {
            self.place(&space, table.table(), key, link)?;
        }
        Ok(link)
    }

    /// The last entry about this stands there.
    pub(super) fn place(&self, space: &SpaceId, kind: &str, key: &str, link: Link) -> Result<()> {
        self.session()
            .change_one(
                "INSERT INTO ledger_rows (space_id, kind, key, seq) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (space_id, kind, key) DO UPDATE SET seq = excluded.seq",
                values![space.as_str(), kind, key, link.seq],
            )
            .doing("write where the last entry stands")
    }
}
