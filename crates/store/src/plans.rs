//! What listing and querying cost does not grow with what is kept: each walks an index, in both
//! databases.

use glovebox_model::{SpaceId, Status};
use jiff::Timestamp;

use crate::execs::ExecFilter;
use crate::ledger::{EntryFilter, Kind};
use crate::sql::{Session, Value};
use crate::state_dir::StateDir;
use crate::store::Store;
use crate::tokens::TokenFilter;

#[path = "../tests/common/postgres.rs"]
#[allow(
    dead_code,
    clippy::print_stderr,
    reason = "the integration tests use the rest; what is skipped is said"
)]
mod postgres;

/// Many rows of one space, with as little in each as the columns need.
const FILL_SQLITE: &str = "WITH RECURSIVE n(i) AS
        (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
    INSERT INTO sandbox_execs (space_id, exec_id, owner_id, opened_seq, closed_seq, closed_hash, record)
    SELECT 'local', format('e_%032x', i * 7919), 'o', i, i, x'00', json_object(
        'status', iif(i % 1000 = 0, 'failed', 'succeeded'),
        'client_id', format('c%d', i),
        'project_id', format('p%d', i % 100),
        'ids', json_object('task_id', format('t%d', i / 10), 'conversation_id', format('c%d', i / 100)))
    FROM n;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
    INSERT INTO ledger_entries SELECT 'local', i, i * 1000, 'planned', '', '{}', '[]', '{}', x'00', x'00'
    FROM n;
    INSERT INTO ledger_terms SELECT space_id, 'kind=planned', at, seq FROM ledger_entries;
    INSERT INTO ledger_terms SELECT space_id, format('task_id=t%d', seq / 10), at, seq
    FROM ledger_entries;";

const FILL_POSTGRES: &str = "
    INSERT INTO sandbox_execs (space_id, exec_id, owner_id, opened_seq, closed_seq, closed_hash,
        record, status, client_id, project_id, task_id, conversation_id)
    SELECT 'local', 'e_' || lpad(to_hex(i * 7919), 32, '0'), 'o', i, i, '\\x00', '{}',
        CASE WHEN i % 1000 = 0 THEN 'failed' ELSE 'succeeded' END, 'c' || i, 'p' || (i % 100),
        't' || (i / 10), 'c' || (i / 100)
    FROM generate_series(1, 30000) i;
    INSERT INTO ledger_entries SELECT 'local', i, i * 1000, 'planned', '', '{}', '[]', '{}', '\\x00', '\\x00'
    FROM generate_series(1, 30000) i;
    INSERT INTO ledger_terms SELECT space_id, 'kind=planned', at, seq FROM ledger_entries;
    INSERT INTO ledger_terms SELECT space_id, 'task_id=t' || (seq / 10), at, seq FROM ledger_entries;
    ANALYZE;";

/// How the database does it: the steps, one on each line.
fn plan(session: &Session, sql: &str, values: &[Value<'_>]) -> String {
    let steps = if session.is_shared() {
        session.rows(&format!("EXPLAIN {sql}"), values, |row| row.text(0))
    } else {
        let explain = format!("EXPLAIN QUERY PLAN {sql}");
        session.rows(&explain, values, |row| row.text(3))
    };
    steps.unwrap().join("\n")
}

fn assert_walks(plan: &str, what: &str, session: &Session, index: &str) {
    // A primary key of SQLite's tables without row ids has no name of its own.
    let named = if session.is_shared() || !index.ends_with("_pkey") {
        index
    } else {
        "PRIMARY KEY"
    };
    assert!(plan.contains(named), "{what}: {plan}");
    for bad in ["SCAN ", "TEMP ", "Seq Scan", "Sort", "Bitmap"] {
        assert!(!plan.contains(bad), "{what}: {plan}");
    }
}

fn exec_filters() -> Vec<(ExecFilter, &'static str)> {
    let mut filters = Vec::new();
    for bits in 0..32u8 {
        let on = |bit: u8| bits & (1 << bit) != 0;
        let filter = ExecFilter {
            status: on(0).then_some(Status::Failed),
            task_id: on(1).then(|| "t7".to_owned()),
            conversation_id: on(2).then(|| "c7".to_owned()),
            project_id: on(3).then(|| "p7".parse().unwrap()),
            limit: 10,
            cursor: on(4).then(|| "15000".to_owned()),
        };
        let index = match (on(1), on(2), on(3), on(0)) {
            (true, ..) => "execs_by_task",
            (_, true, ..) => "execs_by_conversation",
            (_, _, true, _) => "execs_by_project",
            (.., true) => "execs_by_status",
            _ => "execs_by_arrival",
        };
        filters.push((filter, index));
    }
    filters
}

fn entry_filters() -> Vec<(EntryFilter, &'static str)> {
    let any = EntryFilter::default;
    let time = |us| Some(Timestamp::from_microsecond(us).unwrap());
    let task_id = Some("t7".to_owned());
    let kind = Some(Kind::Planned);
    let by_time = "entries_by_time";
    let by_term = "ledger_terms_pkey";
    vec![
        (any(), by_time),
        (
            EntryFilter {
                since: time(5),
                until: time(900_000),
                ..any()
            },
            by_time,
        ),
        (
            EntryFilter {
                kind,
                until: time(900_000),
                ..any()
            },
            by_term,
        ),
        (
            EntryFilter {
                kind,
                task_id,
                since: time(5),
                ..any()
            },
            by_term,
        ),
        (
            EntryFilter {
                cursor: Some("9000000.9000".to_owned()),
                kind,
                ..any()
            },
            by_term,
        ),
    ]
}

fn assert_nothing_scans(store: &Store) {
    let space = SpaceId::local();
    store
        .read(|session| {
            for (filter, index) in exec_filters() {
                let (sql, values) = filter.query(session, &space)?;
                let plan = plan(session, &sql, &values);
                assert_walks(&plan, &format!("{filter:?}"), session, index);
            }
            for (filter, index) in entry_filters() {
                let (sql, values) = filter.query(session, &space)?;
                let plan = plan(session, &sql, &values);
                assert_walks(&plan, &format!("{filter:?}"), session, index);
                if !session.is_shared() {
                    assert!(plan.contains("(at,seq)<(?,?)"), "{filter:?}: {plan}");
                }
            }
            let open = plan(
                session,
                "SELECT DISTINCT owner_id FROM sandbox_execs WHERE closed_seq IS NULL",
                &[],
            );
            assert!(open.contains("execs_still_open"), "{open}");
            Ok(())
        })
        .unwrap();
    for (filter, _) in entry_filters() {
        let found = store.query(&space, &filter).unwrap();
        assert!(!found.items.is_empty(), "{filter:?}");
    }
}

#[test]
fn every_listing_of_sqlite_walks_an_index_and_sorts_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let state = StateDir::open(dir.path()).unwrap();
    let store = Store::open(&state).unwrap();
    let connection = rusqlite::Connection::open(state.database()).unwrap();
    connection.execute_batch(FILL_SQLITE).unwrap();
    assert_nothing_scans(&store);
    store
        .read(|session| {
            for bits in 0..8u8 {
                let filter = TokenFilter {
                    space: (bits & 1 != 0).then(SpaceId::local),
                    include_unusable: bits & 2 != 0,
                    limit: 0,
                    cursor: (bits & 4 != 0).then(|| "5.t_1".to_owned()),
                };
                let (sql, values) = filter.query(Timestamp::now())?;
                let plan = plan(session, &sql, &values);
                assert!(!plan.contains("TEMP"), "{filter:?}: {plan}");
                assert!(plan.contains("INDEX tokens_"), "{filter:?}: {plan}");
            }
            Ok(())
        })
        .unwrap();
    assert!(store.stray_owners(&state).unwrap().is_empty());
}

#[test]
fn every_listing_of_postgres_walks_an_index_and_sorts_nothing() {
    let Some(database) = postgres::Database::create() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let state = StateDir::open(dir.path()).unwrap();
    let store = Store::connect(&state, &database.url).unwrap();
    database.client().batch_execute(FILL_POSTGRES).unwrap();
    assert_nothing_scans(&store);
    assert!(store.stray_owners(&state).unwrap().is_empty());
}
