//! Ledgers as versions wrote them that had no rows under proof.

use ed25519_dalek::{Signer, SigningKey};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::Fixture;

fn encode(texts: &[&str]) -> Vec<u8> {
    let text = |text: &&str| [&(text.len() as u64).to_be_bytes(), text.as_bytes()].concat();
    texts.iter().flat_map(text).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(byte).collect()
}

impl Fixture {
    /// Writes the chains anew, with the key, and without digests of rows. No checkpoint may be due.
    pub(crate) fn forget_proof(&self) {
        let seed = std::fs::read_to_string(self.state.ledger_key()).unwrap();
        let key = SigningKey::from_bytes(&unhex(seed.trim()).try_into().unwrap());
        match self.shared.is_some() {
            true => self.set_triggers(false),
            false => self.drop_triggers(),
        }
        let blob = |bytes: &[u8]| match self.shared.is_some() {
            true => format!("'\\x{}'::bytea", hex(bytes)),
            false => format!("x'{}'", hex(bytes)),
        };
        for space in self.texts("SELECT space_id FROM ledger_heads WHERE seq > 0") {
            let mut export = Vec::new();
            let of = space.parse().unwrap();
            let format = glovebox_store::ExportFormat::Jsonl;
            self.store.export(&of, format, &mut export).unwrap();
            let lines = String::from_utf8(export).unwrap();
            let lines = lines
                .lines()
                .map(|line| serde_json::from_str(line).unwrap());
            let entries = lines.filter(|line: &Value| line["type"] == "entry");
            let (mut last, mut seq) = (vec![0; 32], String::new());
            for mut entry in entries {
                entry["body"].as_object_mut().unwrap().remove("rows");
                if entry["body"]["event"] == "space.head" {
                    entry["body"]["event"] = "noted".into();
                }
                let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
                seq = entry["seq"].to_string();
                let body = entry["body"].to_string();
                let hash = Sha256::digest(encode(&[
                    "glovebox-ledger-entry-v1",
                    &space,
                    &seq,
                    &text("at"),
                    &text("kind"),
                    &text("exec_id"),
                    &entry["ids"].to_string(),
                    &entry["tags"].to_string(),
                    &body,
                    &hex(&last),
                ]));
                let place = format!("space_id = '{space}' AND seq = {seq}");
                self.execute(&format!(
                    "UPDATE ledger_entries SET body = '{}', prev_hash = {}, hash = {} WHERE {place};
                     UPDATE sandbox_execs SET closed_hash = {}
                         WHERE space_id = '{space}' AND closed_seq = {seq};",
                    body.replace('\'', "''"),
                    blob(&last),
                    blob(&hash),
                    blob(&hash)
                ));
                last = hash.to_vec();
            }
            let message = encode(&["glovebox-ledger-head-v1", &space, &seq, &hex(&last)]);
            let signature = key.sign(&message).to_bytes();
            self.execute(&format!(
                "UPDATE ledger_heads SET hash = {}, signature = {} WHERE space_id = '{space}'",
                blob(&last),
                blob(&signature)
            ));
        }
        self.execute("DROP TABLE ledger_rows");
        self.execute("DELETE FROM ledger_heads WHERE seq = 0");
        if self.shared.is_some() {
            self.set_triggers(true);
        }
    }
}
