import type Anthropic from '@anthropic-ai/sdk';

/** The SDK skips pings and has no type for them. */
export type WireEvent = Anthropic.RawMessageStreamEvent | { type: 'ping' };

/** The stream events of a message. Texts and arguments are split into pieces. */
export function eventsOf(message: Anthropic.Message): WireEvent[] {
  const { content, stop_reason, stop_sequence, stop_details, container, usage } = message;
  const { cache_creation_input_tokens, cache_read_input_tokens, input_tokens, output_tokens } = usage;
  const { output_tokens_details, server_tool_use } = usage;
  const start: Anthropic.Message = {
    ...message,
    ...{ content: [], stop_reason: null, stop_sequence: null, stop_details: null },
    usage: { ...usage, output_tokens: 1 },
  };
  return [
    { type: 'message_start', message: start },
    { type: 'ping' },
    ...content.flatMap(blockEvents),
    {
      type: 'message_delta',
      delta: { stop_reason, stop_sequence, stop_details, container },
      usage: {
        ...{ cache_creation_input_tokens, cache_read_input_tokens, input_tokens, output_tokens },
        ...{ output_tokens_details, server_tool_use },
      },
    },
    { type: 'message_stop' },
  ];
}

function blockEvents(block: Anthropic.ContentBlock, index: number): WireEvent[] {
  const delta = (change: Anthropic.RawContentBlockDelta): WireEvent => {
    return { type: 'content_block_delta', index, delta: change };
  };
  const around = (empty: Anthropic.ContentBlock, deltas: WireEvent[]): WireEvent[] => [
    { type: 'content_block_start', index, content_block: empty },
    ...deltas,
    { type: 'content_block_stop', index },
  ];
  switch (block.type) {
    case 'text':
      return around(
        { ...block, text: '' },
        pieces(block.text).map((text) => delta({ type: 'text_delta', text })),
      );
    case 'tool_use':
      return around(
        { ...block, input: {} },
        pieces(JSON.stringify(block.input)).map((json) =>
          delta({ type: 'input_json_delta', partial_json: json }),
        ),
      );
    case 'thinking':
      return around({ ...block, thinking: '', signature: '' }, [
        ...pieces(block.thinking).map((thinking) => delta({ type: 'thinking_delta', thinking })),
        delta({ type: 'signature_delta', signature: block.signature }),
      ]);
    default:
      return around(block, []);
  }
}

function pieces(text: string): string[] {
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)].filter((piece) => piece !== '');
}
