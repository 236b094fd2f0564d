//! Change data capture from PostgreSQL.

use crate::spec::{SourceEvent, SourceHandle, SourceStatus, StartSource};

struct Refused;

impl SourceHandle for Refused {
    fn acknowledge(&self, _position: &str) {}
    fn statistics(&self) -> Vec<(String, repr::Value)> {
        Vec::new()
    }
}

/// Starts the connector.
pub fn start(source: StartSource) -> Box<dyn SourceHandle> {
    let (id, events) = (source.spec.id, source.events);
    source.runtime.spawn(async move {
        let status = SourceStatus::Failed("PostgreSQL sources are not supported".into());
        let _ = events.send(SourceEvent::Status { source: id, status }).await;
    });
    Box::new(Refused)
}

/// What CREATE SOURCE and VALIDATE CONNECTION check.
pub async fn inspect(_connector: &crate::spec::Connector) -> Result<Vec<crate::spec::UpstreamTable>, repr::SqlError> {
    Err(repr::SqlError::unsupported("a PostgreSQL source", "use a Kafka, FILE or LOAD GENERATOR source"))
}
