//! Encryption: each sslmode against servers with and without a certificate.

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use steadfast_cluster::Server;

use crate::{CREATE_ROLE, OWN_SCHEMA, as_user, connect, execute, number, open, refused, says, with_query};

/// A server with a certificate for `localhost`, made by an authority whose certificate is in a file.
struct EncryptedServer {
    server: Server,
    folder: tempfile::TempDir,
}

impl EncryptedServer {
    fn start() -> Self {
        let (authority, certificate, key) = certificates();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), authority).unwrap();
        let server = Server::durable().unwrap();
        let files = [("server.crt", certificate.as_str()), ("server.key", key.as_str())];
        server.start_changed(&[("ssl", "on")], &files).unwrap();
        Self { server, folder }
    }

    /// The address by number, which the certificate does not name.
    fn url(&self, query: &str) -> String {
        with_query(self.server.url(), query)
    }

    /// The address by the name that the certificate has.
    fn url_by_name(&self, query: &str) -> String {
        self.url(query).replace("127.0.0.1", "localhost")
    }

    fn authority(&self) -> String {
        shown(&self.folder.path().join("ca.pem"))
    }
}

fn shown(path: &Path) -> String {
    path.to_str().unwrap().replace('/', "%2F")
}

/// An authority's certificate, a certificate that it made for `localhost`, and the key of that one.
fn certificates() -> (String, String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let made =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    (authority.pem(), made.pem(), key.serialize_pem())
}

/// Counts the connections of one application that use TLS.
const ENCRYPTED: &str = "SELECT count(*) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE s.ssl
         AND a.application_name = '{name}'";

#[tokio::test]
async fn each_sslmode_checks_what_it_promises() {
    let server = EncryptedServer::start();
    let admin = connect(server.server.url()).await;
    let ca = server.authority();

    let plain = open(&server.url("sslmode=disable&application_name=disable"), "s").await.unwrap();
    assert_eq!(
        number(
            &admin,
            "SELECT count(*) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE NOT s.ssl
                 AND a.application_name = '{name}'",
            "disable"
        )
        .await,
        1
    );
    drop(plain);

    for (mode, name) in [("prefer", "prefer"), ("require", "require")] {
        let url = server.url(&format!("sslmode={mode}&application_name={name}"));
        let _provider = open(&url, "s").await.unwrap();
        assert_eq!(number(&admin, ENCRYPTED, name).await, 1, "{mode}");
    }
    let _unsaid = open(&server.url("application_name=unsaid"), "s").await.unwrap();
    assert_eq!(number(&admin, ENCRYPTED, "unsaid").await, 1);

    // The authority is not among the trusted ones of this machine.
    for mode in ["verify-ca", "verify-full"] {
        let said = refused(&server.url_by_name(&format!("sslmode={mode}")), "s").await;
        says(&said, &["UnknownIssuer", "name its authority with sslrootcert"]);
    }

    let url = server.url(&format!("sslmode=verify-ca&sslrootcert={ca}&application_name=ca"));
    let _ca = open(&url, "s").await.unwrap();
    assert_eq!(number(&admin, ENCRYPTED, "ca").await, 1);

    let said = refused(&server.url(&format!("sslmode=verify-full&sslrootcert={ca}")), "s").await;
    says(&said, &["certificate", "127.0.0.1", "the host as the certificate does"]);

    let url = server.url_by_name(&format!("sslmode=verify-full&sslrootcert={ca}&application_name=full"));
    let _full = open(&url, "s").await.unwrap();
    assert_eq!(number(&admin, ENCRYPTED, "full").await, 1);

    // With `sslrootcert`, `require` verifies the authority, as other clients do.
    let (other, _, _) = certificates();
    let path = server.folder.path().join("other.pem");
    std::fs::write(&path, other).unwrap();
    let said = refused(&server.url(&format!("sslmode=require&sslrootcert={}", shown(&path))), "s").await;
    says(&said, &["certificate", "sslrootcert"]);
}

#[tokio::test]
async fn a_server_that_wants_encryption_and_a_password_gets_both() {
    let server = EncryptedServer::start();
    let admin = connect(server.server.url()).await;
    execute(&admin, CREATE_ROLE, "walter").await;
    execute(&admin, OWN_SCHEMA, "walter").await;
    let hba = "hostssl all walter 127.0.0.1/32 scram-sha-256\nhost all postgres 127.0.0.1/32 trust\n";
    server.server.start_changed(&[], &[("pg_hba.conf", hba)]).unwrap();
    let url = as_user(server.server.url(), "walter", "walter");
    open(&with_query(&url, "sslmode=require"), "walter").await.unwrap();
    open(&with_query(&url, "sslmode=require&channel_binding=require"), "walter").await.unwrap();
    let said = refused(&with_query(&url, "sslmode=disable"), "walter").await;
    says(&said, &["28000", "pg_hba.conf"]);
}

#[tokio::test]
async fn a_server_without_encryption_is_refused_where_encryption_is_required() {
    let server = crate::server();
    let schema = server.schema("plain");
    for mode in ["require", "verify-ca", "verify-full"] {
        let said = refused(&with_query(server.url(), &format!("sslmode={mode}")), schema.name()).await;
        says(&said, &["TLS", "sslmode"]);
    }
    for mode in ["disable", "prefer"] {
        open(&with_query(server.url(), &format!("sslmode={mode}")), schema.name()).await.unwrap();
    }
}

#[tokio::test]
async fn a_root_certificate_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (missing, empty) = (folder.path().join("missing.pem"), folder.path().join("empty.pem"));
    std::fs::write(&empty, "nothing").unwrap();
    for (path, why) in [(missing, "cannot be read"), (empty, "holds no certificate")] {
        let url = format!("postgres://h/d?sslmode=verify-full&sslrootcert={}", shown(&path));
        says(&refused(&url, "s").await, &["sslrootcert", path.to_str().unwrap(), why, "name a PEM file"]);
    }
}
