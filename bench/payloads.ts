/** Tools and results of the echo servers: prebuilt JSON, so that the server does the same work in every variant. */

export const payloadNames = ['200B', '10kB', '1MB'] as const;
export type PayloadName = (typeof payloadNames)[number];

export const toolOfPayload: Record<PayloadName, string> = {
  '200B': 'payload_200b',
  '10kB': 'payload_10kb',
  '1MB': 'payload_1mb',
};

function textResult(bytes: number): string {
  const frame = JSON.stringify({ content: [{ type: 'text', text: '' }] });
  return JSON.stringify({ content: [{ type: 'text', text: 'x'.repeat(bytes - frame.length) }] });
}

function structuredResult(bytes: number): string {
  const rows: object[] = [];
  let size = 100;
  while (size < bytes) {
    const index = rows.length;
    const row = {
      id: index,
      name: `customer ${index}`,
      email: `customer${index}@example.com`,
      balance: index * 1.25,
      active: index % 3 === 0,
      tags: ['alpha', 'beta'],
      note: null,
    };
    rows.push(row);
    size += JSON.stringify(row).length + 1;
  }
  return JSON.stringify({
    content: [{ type: 'text', text: `${rows.length} rows` }],
    structuredContent: { rows, total: rows.length },
  });
}

/** The `result` of a call, as JSON in ASCII. */
export function payloadJson(name: PayloadName): string {
  switch (name) {
    case '200B':
      return textResult(200);
    case '10kB':
      return structuredResult(10_000);
    case '1MB':
      return structuredResult(1_000_000);
  }
}

/** The `result` of tools/list with that many tools, the payload tools first. */
export function toolListJson(count: number): string {
  const names = Object.values(toolOfPayload);
  for (let index = names.length; index < count; index++) names.push(`tool_${String(index).padStart(5, '0')}`);
  const tools = names.slice(0, Math.max(count, payloadNames.length)).map((name) => ({
    name,
    description: `Answers with a fixed payload. This is ${name}, one of many that look alike.`,
    inputSchema: {
      type: 'object',
      properties: { query: { type: 'string', description: 'What to look for' }, limit: { type: 'integer' } },
      required: ['query'],
    },
  }));
  return JSON.stringify({ tools });
}
