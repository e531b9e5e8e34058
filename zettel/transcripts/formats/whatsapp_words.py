"""WhatsApp's notices of edited and deleted messages in many languages."""

from __future__ import annotations

EDITED = "|".join(
    """edited bearbeitet editó editad modifi bewerkt изменен отредактир змінен edytowan düzenlendi diedit 수정 編集 编辑
    編輯 تعديل נערכה redigera redigert redigeret muokattu upraven szerkeszt επεξεργ แก้ไข संपादित editat""".split()
)
"""Parts of ``<This message was edited>``, as alternatives of a regular expression."""

DELETED = frozenset(
    """
    null
    this message was deleted
    you deleted this message
    diese nachricht wurde gelöscht
    du hast diese nachricht gelöscht
    se eliminó este mensaje
    eliminaste este mensaje
    este mensaje fue eliminado
    ce message a été supprimé
    vous avez supprimé ce message
    mensagem apagada
    essa mensagem foi apagada
    esta mensagem foi apagada
    você apagou esta mensagem
    apagou esta mensagem
    questo messaggio è stato eliminato
    hai eliminato questo messaggio
    dit bericht is verwijderd
    dit bericht werd verwijderd
    u hebt dit bericht verwijderd
    je hebt dit bericht verwijderd
    данное сообщение удалено
    вы удалили данное сообщение
    сообщение удалено
    це повідомлення видалено
    bu mesaj silindi
    bu mesajı sildiniz
    pesan ini telah dihapus
    pesan ini dihapus
    anda menghapus pesan ini
    ta wiadomość została usunięta
    usunięto tę wiadomość
    wiadomość została usunięta
    삭제된 메시지입니다
    이 메시지는 삭제되었습니다
    このメッセージは削除されました
    このメッセージを削除しました
    此消息已删除
    您删除了这条消息
    此訊息已刪除
    您刪除了此訊息
    تم حذف هذه الرسالة
    حذفت هذه الرسالة
    הודעה זו נמחקה
    מחקת הודעה זו
    meddelandet raderades
    du raderade det här meddelandet
    denne besked blev slettet
    denne meldingen ble slettet
    tämä viesti poistettiin
    tato zpráva byla odstraněna
    ezt az üzenetet törölték
    αυτό το μήνυμα διαγράφηκε
    acest mesaj a fost șters
    यह संदेश मिटाया गया
    ข้อความนี้ถูกลบแล้ว
    tin nhắn này đã bị xóa
    """.strip().split("\n    ")
)
"""Messages in place of deleted ones, in lower case; ``null`` replaces a message that could be seen once only."""
