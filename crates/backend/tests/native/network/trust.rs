//! The certificates that programs inside trust.

use glovebox_backend::Spec;

use crate::house::Yard;
use crate::network::ground::{networked, see, spec};

pub(crate) fn a_bundle_is_where_programs_look() {
    let yard = Yard::new();
    let profile = networked();
    let bundle = b"-----BEGIN CERTIFICATE-----\n".repeat(10_000);
    let spec = Spec {
        trust: Some(&bundle),
        ..spec(&profile)
    };
    let prepared = yard.native().open(&spec, &yard.house.state()).unwrap();
    let code = r#"
import errno, os
for path in ("/run/ca-certificates.crt", "/etc/ssl/certs/ca-certificates.crt"):
    print(len(open(path).read()), oct(os.stat(path).st_mode))
    for act in (lambda: open(path, "w"), lambda: os.unlink(path), lambda: os.chmod(path, 0o666)):
        try:
            act()
            print("done")
        except OSError as error:
            assert error.errno in (errno.EROFS, errno.EBUSY, errno.EACCES), error
facts = os.statvfs("/tmp")
print(facts.f_blocks * facts.f_bsize - 16 * 2**20 >= 0)
"#;
    let told = see(prepared, &profile, code, &[]).unwrap();
    let each = format!("{} 0o100444\n", bundle.len());
    assert_eq!(told.stdout, format!("{each}{each}True\n"), "{told:?}");
}
