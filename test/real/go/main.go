// A client of the Go SDK: it lists the tools at an address, calls one, and prints both as JSON.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	address, tool, arguments := os.Args[1], os.Args[2], json.RawMessage(os.Args[3])
	ctx := context.Background()
	client := mcp.NewClient(&mcp.Implementation{Name: "go-client", Version: "1.0.0"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: address}, nil)
	check(err)
	tools := 0
	for _, err := range session.Tools(ctx, nil) {
		check(err)
		tools++
	}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	check(err)
	text := ""
	for _, content := range result.Content {
		if part, isText := content.(*mcp.TextContent); isText {
			text += part.Text
		}
	}
	check(session.Close())
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{"tools": tools, "text": text}))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
