//! Excusing an expired delivery (S5): its process did not die.

use std::borrow::Cow;

use steadfast_store::{LeaseToken, ProviderError};

use crate::link::db::{Db, column};
use crate::link::escape::escape;
use crate::link::statement::calls;

const OPERATION: &str = "excuse";

calls! {
    /// Takes an expired delivery off the count of the messages that it carried.
    ExcuseTurn<'a> => excuse_turn {
        token: Cow<'a, str>,
        now_ms: Option<i64>,
    }

    /// Takes an expired delivery off the count of its activity.
    ExcuseWork<'a> => excuse_work {
        token: Cow<'a, str>,
        now_ms: Option<i64>,
    }
}

impl Db {
    /// Takes the delivery of an expired lease off the count. Returns whether there was one.
    pub(crate) async fn excuse(&self, lease: &LeaseToken) -> Result<bool, ProviderError> {
        let now_ms = self.now();
        let (row, name) = match lease {
            LeaseToken::Turn(token) => {
                let call = ExcuseTurn { token: escape(token), now_ms };
                (self.one(OPERATION, call.statement()).await?, "excuse_turn")
            }
            LeaseToken::Work(token) => {
                let call = ExcuseWork { token: escape(token), now_ms };
                (self.one(OPERATION, call.statement()).await?, "excuse_work")
            }
        };
        row.map_or(Ok(false), |row| column(OPERATION, &row, name))
    }
}
