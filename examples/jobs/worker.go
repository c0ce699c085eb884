// A worker for jobs in Go, without a dependency: go run worker.go
// MINUTEBOOK_URL and MINUTEBOOK_TOKEN say where the server is, and who asks.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"
)

type object = map[string]any

var client = http.Client{Timeout: time.Minute}

// ask returns the answer of the server, nil for an empty one.
func ask(method, path string, said object) (object, error) {
	body, _ := json.Marshal(said)
	request, err := http.NewRequest(method, os.Getenv("MINUTEBOOK_URL")+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("MINUTEBOOK_TOKEN"))
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode == 204 {
		return nil, nil
	}
	if answer.StatusCode != 200 {
		return nil, fmt.Errorf("the server answered %s", answer.Status)
	}
	var found object
	return found, json.NewDecoder(answer.Body).Decode(&found)
}

// work does the work of a job and returns its figures. Yours goes here.
func work(job object) (object, error) {
	answer, err := client.Get(job["url"].(string))
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != 200 {
		return nil, fmt.Errorf("%s answered %s", job["url"], answer.Status)
	}
	count, err := io.Copy(io.Discard, answer.Body)
	return object{"bytes": count}, err
}

func main() {
	for {
		job, err := ask("GET", "/jobs/next?queue=quick", nil)
		if err == nil && job != nil {
			verb, said := "complete", object{"lease": job["lease"]}
			if result, failed := work(job); failed != nil {
				verb, said["error"] = "error", failed.Error()
			} else {
				said["result"] = result
			}
			_, err = ask("POST", fmt.Sprintf("/jobs/%s/%s", job["id"], verb), said)
		}
		if err != nil {
			// 409: another worker got the job meanwhile. 503: the server stops; ask again.
			log.Print(err)
			time.Sleep(time.Second)
		}
	}
}
