"""What most logs say: the phrases that a page of version 1 is compressed with, and that therefore never change."""

from __future__ import annotations

# A replay of old pages depends on every byte. Other phrases need a new version in `store.log.page_codec`. What comes often stands last.
PHRASES = (
    b'"image_gen":{"input_tokens":0,"input_tokens_details":{"image_tokens":0,"text_tokens":0},"output_tokens":0,'
    b'"output_tokens_details":{"image_tokens":0,"text_tokens":0},"total_tokens":0},"web_search":{"num_requests":0}},'
    b'"type":"json_schema","name":"strict":true,"schema":{"type":"object","properties":{"description":"string","required":['
    b'"additionalProperties":false}],"tools":[{"type":"function","parameters":{"defer_loading":'
    b"response.queuedresponse.failedresponse.incompleteresponse.refusal.deltaresponse.refusal.doneerror"
    b'response.custom_tool_call_input.deltaresponse.custom_tool_call_input.donecustom_tool_call"input":"ctc_'
    b'response.function_call_arguments.deltaresponse.function_call_arguments.done"item":{"type":"function_call","id":"fc_'
    b'"call_id":"call_","namespace":null,"arguments":"{\\"'
    b'response.reasoning_summary_part.addedresponse.reasoning_summary_text.delta"summary_index":0,'
    b'response.reasoning_summary_text.doneresponse.reasoning_summary_part.done"type":"summary_text"'
    b'response.createdresponse.in_progressresponse.completed,"response":{"id":"resp_","object":"response","created_at":17'
    b'"completed_at":17"completed_at":null,"status":"queued","background":true,"error":{"code":"server_error","message":"'
    b'"incomplete_details":{"reason":"max_output_tokens"},"instructions":"You are a helpful assistant.'
    b',"completed_at":null,"status":"in_progress","background":false,"error":null,"incomplete_details":null,'
    b'"instructions":null,"max_output_tokens":null,"max_tool_calls":null,"model":"gpt-oss-demo-chat","output":['
    b'],"parallel_tool_calls":true,"previous_response_id":"resp_"previous_response_id":null,"prompt_cache_key":null,'
    b'"prompt_cache_retention":null,"reasoning":{"effort":null,"summary":null,"context":null},"safety_identifier":null,'
    b'"service_tier":"auto","store":true,"temperature":1.0,"text":{"format":{"type":"text"},"verbosity":"medium"},'
    b'"tool_choice":"auto","tool_usage":{"image_gen":{"input_tokens":0,"input_tokens_details":{"image_tokens":0,'
    b'"text_tokens":0},"output_tokens":0,"output_tokens_details":{"image_tokens":0,"text_tokens":0},"total_tokens":0},'
    b'"web_search":{"num_requests":0}},"tools":[],"top_logprobs":0,"top_p":1.0,"presence_penalty":0.0,'
    b'"frequency_penalty":0.0,"truncation":"disabled","usage":{"input_tokens":,"input_tokens_details":{"cached_tokens":0,'
    b'"cache_write_tokens":0},"output_tokens":,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":}'
    b',"usage":null,"user":null,"metadata":{},"moderation":null,"access_programs":null,"conversation":{"id":"conv_"}}}'
    b'response.content_part.doneresponse.content_part.added,"part":{"type":"reasoning_text","text":""}}'
    b'response.reasoning_text.done,"text":"response.reasoning_text.delta,"item_id":"rs_","output_index":1,"content_index":0,'
    b'"item":{"type":"reasoning","id":"rs_","summary":[],"content":[{"type":"reasoning_text","text":"'
    b'"encrypted_content":null,"status":"completed"}}response.output_item.doneresponse.output_item.added,"output_index":0,'
    b'"item":{"type":"message","id":"msg_","status":"completed","role":"assistant","content":['
    b'{"type":"output_text","text":"","annotations":[],"logprobs":[]}],"phase":"final_answer"}}'
    b'"item":{"type":"message","id":"msg_","status":"in_progress","role":"assistant","content":[]}}'
    b'"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}}'
    b'response.output_text.donelogprobs":[]}response.output_text.delta,"item_id":"msg_0","output_index":0,"content_index":0,'
    b'"delta":"","logprobs":[]}'
)
