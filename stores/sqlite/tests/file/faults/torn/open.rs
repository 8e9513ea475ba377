//! G6: a file with a torn page opens, or the error says that it is damaged and what helps.

use steadfast_sqlite::{Durability, OpenError, SqliteOptions, SqliteProvider};

use super::row::Torn;
use super::{PAGE, begin, close, overwrite};

#[tokio::test]
async fn g6_a_file_with_a_torn_page_opens_or_is_said_to_be_damaged() {
    let file = Torn::new();
    let store = file.open().await;
    begin(&store, "instance", String::new()).await;
    close(store).await;
    let whole = std::fs::read(&file.path).expect("the file");
    let (mut opened, mut damaged) = (0, 0);
    for page in 0..whole.len() / PAGE {
        let (_folder, path) = crate::stage::place();
        std::fs::write(&path, &whole).expect("a copy");
        overwrite(&path, page);
        let url = format!("sqlite:{}", path.display());
        let options = SqliteOptions { durability: Durability::ProcessCrash, ..SqliteOptions::default() };
        match SqliteProvider::new(&url, Some(options)).await {
            Ok(_) => opened += 1,
            Err(OpenError::NotADatabase { .. }) if page == 0 => {}
            Err(error @ OpenError::Damaged { .. }) => {
                damaged += 1;
                let text = error.to_string();
                assert!(text.contains("is damaged") && text.contains(".recover"), "{text}");
            }
            Err(error) => panic!("page {page}: {error:?}"),
        }
    }
    assert!(opened > damaged && damaged > 0, "{opened} opened, {damaged} are damaged");
}
