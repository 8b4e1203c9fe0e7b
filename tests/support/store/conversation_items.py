"""Items of conversations in the database."""

from __future__ import annotations

from responses_app.models import Conversation, ConversationItem, Item

# Links every item to every conversation.
LINK_SQL = """
INSERT INTO responses_app_conversationitem (conversation_id, item_id, uid)
SELECT conversation.id, item.id, item.uid FROM responses_app_conversation AS conversation, responses_app_item AS item
"""


async def add_item(conversation: Conversation) -> Item:
    """Add an item to a conversation."""
    item = await Item.objects.acreate(uid="msg_1", direction="input", type="message", body="{}")
    await ConversationItem.objects.acreate(conversation=conversation, item=item, uid=item.uid)
    return item
